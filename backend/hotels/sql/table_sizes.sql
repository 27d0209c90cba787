-- `table_bytes` includes the TOAST table. Rows are counted, not estimated.
SELECT relname,
       (xpath('/row/count/text()', query_to_xml(
           format('SELECT count(*) FROM %I.%I', schemaname, relname), false, true, '')
       ))[1]::text::bigint,
       pg_table_size(relid),
       pg_indexes_size(relid),
       pg_total_relation_size(relid)
FROM pg_stat_user_tables
ORDER BY pg_total_relation_size(relid) DESC, relname
