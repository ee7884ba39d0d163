-- The ledger: one serial chain of rows for each workspace, to which rows are only ever added.

CREATE TABLE troth.workspaces (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> ''),
    -- exact number of rows without a hash that may stand before the first hashed one
    unhashed_prefix bigint NOT NULL DEFAULT 0 CHECK (unhashed_prefix >= 0),
    -- what the rows amount to; written by the trigger below alone
    lines bigint NOT NULL DEFAULT 0,
    last_hash text NOT NULL DEFAULT repeat('0', 64),
    head text NOT NULL DEFAULT repeat('0', 64)
) WITH (fillfactor = 50);

CREATE TABLE troth.rows (
    workspace integer NOT NULL REFERENCES troth.workspaces,
    line bigint NOT NULL CHECK (line > 0),
    -- the row exactly as its line stands in the file of exchange, without the line feed
    raw bytea NOT NULL CHECK (length(raw) <= 1048592 AND position('\x0a'::bytea IN raw) = 0),
    -- UTF-8 of two members of that row, for the indexes below; the bytes of the row are what counts
    id bytea,
    source_key bytea,
    hash text CHECK (hash ~ '^[0-9a-f]{64}$'),
    -- by this a writer whose connection broke finds its own row again
    token uuid NOT NULL,
    PRIMARY KEY (workspace, line)
);

-- An index entry has a largest size and an id has none, so the digests are compared.
CREATE UNIQUE INDEX rows_id ON troth.rows (workspace, sha256(id));
CREATE UNIQUE INDEX rows_source_key ON troth.rows (workspace, sha256(source_key));

-- Genesis keys of a workspace, the newest in force, and what lies beside them. Whoever may only write rows cannot
-- add one. No data: the key was removed.
CREATE TABLE troth.constitutions (
    workspace integer NOT NULL REFERENCES troth.workspaces,
    number integer NOT NULL CHECK (number > 0),
    data bytea,
    signature bytea,
    PRIMARY KEY (workspace, number)
);

-- What a writer does first: wait for the others, then learn where the chain stands.
CREATE FUNCTION troth.hold(wanted integer) RETURNS SETOF troth.workspaces
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'SELECT * FROM troth.workspaces WHERE id = wanted FOR UPDATE';
REVOKE ALL ON FUNCTION troth.hold(integer) FROM PUBLIC;

-- Rows are added at the end, in order, by whichever statement; the workspace's head follows.
CREATE FUNCTION troth.extend() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    added record;
    held troth.workspaces;
BEGIN
    FOR added IN SELECT workspace, line, hash FROM new_rows ORDER BY workspace, line LOOP
        IF held.id IS DISTINCT FROM added.workspace THEN
            IF held.id IS NOT NULL THEN
                UPDATE troth.workspaces SET lines = held.lines, last_hash = held.last_hash, head = held.head
                    WHERE id = held.id;
            END IF;
            SELECT * INTO STRICT held FROM troth.workspaces WHERE id = added.workspace FOR UPDATE;
        END IF;
        IF added.line <> held.lines + 1 THEN
            RAISE EXCEPTION 'line % is not the next one of this ledger, % is', added.line, held.lines + 1
                USING ERRCODE = 'restrict_violation';
        END IF;
        held.lines := added.line;
        IF added.hash IS NOT NULL THEN
            held.last_hash := added.hash;
            held.head := encode(sha256(convert_to(held.head || added.hash, 'UTF8')), 'hex');
        END IF;
    END LOOP;
    IF held.id IS NOT NULL THEN
        UPDATE troth.workspaces SET lines = held.lines, last_hash = held.last_hash, head = held.head
            WHERE id = held.id;
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION troth.extend() FROM PUBLIC;

CREATE TRIGGER extend AFTER INSERT ON troth.rows
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION troth.extend();

-- Nothing recorded is changed or removed, by whomever: owners too have to switch this off before they can.
CREATE FUNCTION troth.refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'a ledger is only ever added to: % of %.% is refused', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON troth.rows
    FOR EACH STATEMENT EXECUTE FUNCTION troth.refuse();
CREATE TRIGGER only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON troth.constitutions
    FOR EACH STATEMENT EXECUTE FUNCTION troth.refuse();
CREATE TRIGGER only_added BEFORE DELETE OR TRUNCATE ON troth.workspaces
    FOR EACH STATEMENT EXECUTE FUNCTION troth.refuse();
-- The head moves only with a row (the trigger above is the first one, this the second); the rest while it is empty.
CREATE TRIGGER only_followed BEFORE UPDATE ON troth.workspaces
    FOR EACH ROW WHEN (pg_trigger_depth() < 1 AND (OLD.lines <> 0 OR NEW.lines <> 0 OR NEW.name <> OLD.name
        OR NEW.head <> OLD.head OR NEW.last_hash <> OLD.last_hash))
    EXECUTE FUNCTION troth.refuse();

ALTER TABLE troth.rows ENABLE ALWAYS TRIGGER only_added;
ALTER TABLE troth.constitutions ENABLE ALWAYS TRIGGER only_added;
ALTER TABLE troth.workspaces ENABLE ALWAYS TRIGGER only_added;
ALTER TABLE troth.workspaces ENABLE ALWAYS TRIGGER only_followed;
