-- A daemon that decides by what it wrote keeps its own streams here for good: those with `kept` lose nothing but what
-- agents said along the way, however old or full the outbox is.

ALTER TABLE sending ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
