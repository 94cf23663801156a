-- Spreads the ledger over the nodes of a Citus cluster. To be run once, behind the tables and before the first server.
-- All tables are distributed by the bucket and colocated, so what a transaction writes lies on one node; only the
-- opening of a session may touch a second one, the node of its name in `places`, and Citus then commits in two phases.
-- Choose at least as many buckets as the cluster will ever have nodes (`&buckets=64`): their number is fixed.

SELECT create_distributed_table('events', 'bucket');
SELECT create_distributed_table('counters', 'bucket', colocate_with => 'events');
SELECT create_distributed_table('places', 'bucket', colocate_with => 'events');
SELECT create_distributed_table('roots', 'bucket', colocate_with => 'events');
SELECT create_distributed_table('streams', 'bucket', colocate_with => 'events');
SELECT create_distributed_table('losers', 'bucket', colocate_with => 'events');
SELECT create_distributed_table('deliveries', 'bucket', colocate_with => 'events');
SELECT create_distributed_table('seals', 'bucket', colocate_with => 'events');
SELECT create_distributed_table('checkpoints', 'bucket', colocate_with => 'events');
SELECT create_distributed_table('tokens', 'bucket', colocate_with => 'events');
SELECT create_distributed_table('ledger', 'bucket', colocate_with => 'events');
