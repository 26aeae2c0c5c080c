/**
 * The failures of the journal:
 * - `JOURNAL_FULL`: no space; nothing was changed and the journal stays usable. Free space in its file system.
 * - `JOURNAL_LOCKED`: another agent has it open.
 * - `JOURNAL_ADDRESS_TAKEN`: another lease has one of the addresses.
 * - `JOURNAL_ENI_CONFLICT`: another ENI has the table or slot.
 * - `JOURNAL_NO_LEASE`: there is no lease to activate.
 * - `JOURNAL_BROKEN`: the file cannot be read or written and could not be replaced.
 */
export type JournalErrorCode =
  | 'JOURNAL_FULL'
  | 'JOURNAL_LOCKED'
  | 'JOURNAL_ADDRESS_TAKEN'
  | 'JOURNAL_ENI_CONFLICT'
  | 'JOURNAL_NO_LEASE'
  | 'JOURNAL_BROKEN';

/** An error of the journal. Nothing of the failed transaction remains. */
export class JournalError extends Error {
  readonly code: JournalErrorCode;
  readonly path: string;

  constructor(code: JournalErrorCode, path: string, message: string, options?: ErrorOptions) {
    super(`journal ${path}: ${message}`, options);
    this.name = 'JournalError';
    this.code = code;
    this.path = path;
  }
}
