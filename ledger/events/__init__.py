"""What an event is: wire structs, decoding, repair, limits, digests."""
