// Result codes of SQLite: the low byte is the primary code, the rest gives details. https://sqlite.org/rescode.html
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;
const SQLITE_CONSTRAINT_PRIMARYKEY = 1555;
const SQLITE_CONSTRAINT_UNIQUE = 2067;

/** Reports whether there was no space, as SQLite or the file system reports it. */
export function isFull(error: unknown): boolean {
  return kindOf(error) === SQLITE_FULL || codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT';
}

/** Reports whether another process holds the lock. */
export function isLocked(error: unknown): boolean {
  return kindOf(error) === SQLITE_BUSY;
}

/** Reports whether the file is damaged, or cannot be reached any more. */
export function isDamage(error: unknown): boolean {
  const kind = kindOf(error);
  const kinds = [SQLITE_READONLY, SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_CANTOPEN, SQLITE_NOTADB];
  return kind !== undefined && kinds.includes(kind);
}

/**
 * Reports whether an address has an owner already: only `lease_address` has a primary key that is inserted without
 * upsert.
 */
export function isAddressTaken(error: unknown): boolean {
  return resultOf(error) === SQLITE_CONSTRAINT_PRIMARYKEY;
}

/** Reports whether a table or slot belongs to another ENI: these are the only unique columns. */
export function isEniConflict(error: unknown): boolean {
  return resultOf(error) === SQLITE_CONSTRAINT_UNIQUE;
}

function kindOf(error: unknown): number | undefined {
  const result = resultOf(error);
  return result === undefined ? undefined : result & 0xff;
}

function resultOf(error: unknown): number | undefined {
  const isSqlite = error instanceof Error && 'errcode' in error && codeOf(error) === 'ERR_SQLITE_ERROR';
  return isSqlite && typeof error.errcode === 'number' ? error.errcode : undefined;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
