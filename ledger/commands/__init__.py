"""Decisions: load → fold → decide (pure) → conditional append. Two racers never both win."""
