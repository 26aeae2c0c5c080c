import { type Logger as PinoLogger, pino } from 'pino';
import { showBytesInJson } from './byte-text.ts';
import { limitText, limitValue, MAX_TEXT } from './limit-text.ts';
import type { LogFields, Logger } from './log.ts';

/** Values of `--log-level`, from the most lines to the fewest. */
const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
/** One of those levels. */
type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Opens a logger that writes JSON lines to a descriptor. It writes synchronously, because the last line before a crash
 * is the most important one. It uses no pino transport: a transport is a worker thread, and a thread that is created
 * while a Pod's network namespace is entered would stay in that namespace. Each value is bounded (`limitValue`).
 */
export function openPinoLogger(level: LogLevel, fd: number): Logger {
  const destination = pino.destination({ dest: fd, sync: true });
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: (error: unknown) => renderError(error) },
  };
  const shown = { write: (line: string) => destination.write(showBytesInJson(line)) };
  return adapt(pino(options, shown));
}

function adapt(logger: PinoLogger): Logger {
  return {
    debug: (message, fields) => logger.debug(limited(fields), message),
    info: (message, fields) => logger.info(limited(fields), message),
    warn: (message, fields) => logger.warn(limited(fields), message),
    error: (message, fields) => logger.error(limited(fields), message),
    child: (fields: LogFields) => adapt(logger.child(limited(fields))),
  };
}

function limited(fields: LogFields = {}): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, limitValue(value)]));
}

/** Most causes of an error in a log line; an error can be its own cause. */
const MAX_CAUSES = 8;
const MAX_CAUSE_TEXT = 1_024;

/**
 * Renders an error with its code and the chain of its causes. The stack is added only to errors without a code: those
 * were not expected.
 */
function renderError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return limitValue(error);
  const cut = (text: string): string => limitText(text, depth === 0 ? MAX_TEXT.log : MAX_CAUSE_TEXT);
  const hasCode = 'code' in error;
  const code = hasCode
    ? { code: typeof error.code === 'number' ? error.code : cut(String(error.code)) }
    : { stack: cut(error.stack ?? '') };
  const hasCause = error.cause !== undefined && depth < MAX_CAUSES;
  const cause = hasCause ? { cause: renderError(error.cause, depth + 1) } : {};
  return { name: error.name, message: cut(error.message), ...code, ...cause };
}
