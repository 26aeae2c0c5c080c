/** Values that accompany a constant message; names in camelCase, units last (`waitMs`). */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes structured log lines: a constant message that can be searched for, and fields that vary. */
export type Logger = {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Returns a logger that adds `fields` to each line (`podKey`, `eniId`, `requestId`). */
  child(fields: LogFields): Logger;
};

/** Drops every line: for examples, and for tests that do not check logs. */
export const silentLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLogger,
};
