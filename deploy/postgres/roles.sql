-- The roles with which Weir uses a PostgreSQL database, each with no more rights than it needs. A superuser runs this in
-- the database that Weir shall use, as often as wanted:
--
--   createdb weir && psql -d weir -f roles.sql
--
--   weir_owner   owns the tables: `weir store migrate`, `weir store restore` and `weir store move`, and nothing else
--   weir_plane   reads and changes rows: every `weir control-plane`
--   weir_backup  reads: `weir store backup`
--
-- Another owner, a schema other than `public`: psql -v owner=weir -v schema=weir …
-- It sets no passwords: \password weir_plane, or a certificate in pg_hba.conf.
\set ON_ERROR_STOP on
\if :{?owner}
\else
\set owner weir_owner
\endif
\if :{?schema}
\else
\set schema public
\endif

SELECT format('CREATE ROLE %I LOGIN', name) FROM unnest(ARRAY[:'owner', 'weir_plane', 'weir_backup']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec

ALTER DATABASE :"DBNAME" OWNER TO :"owner";
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO weir_plane, weir_backup;

CREATE SCHEMA IF NOT EXISTS :"schema" AUTHORIZATION :"owner";
REVOKE CREATE ON SCHEMA :"schema" FROM PUBLIC;
GRANT ALL ON SCHEMA :"schema" TO :"owner";
GRANT USAGE ON SCHEMA :"schema" TO weir_plane, weir_backup;

-- What is there already, and what the owner makes from now on.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA :"schema" TO weir_plane;
GRANT SELECT, USAGE ON ALL SEQUENCES IN SCHEMA :"schema" TO weir_plane;
GRANT SELECT ON ALL TABLES IN SCHEMA :"schema" TO weir_backup;
GRANT SELECT ON ALL SEQUENCES IN SCHEMA :"schema" TO weir_backup;
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema"
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO weir_plane;
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema" GRANT SELECT, USAGE ON SEQUENCES TO weir_plane;
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema" GRANT SELECT ON TABLES TO weir_backup;
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema" GRANT SELECT ON SEQUENCES TO weir_backup;
