import { type Logger as PinoLogger, pino } from 'pino';
import type { LogFields, Logger } from './log.ts';

/** Values of `--log-level`, from the most lines to the fewest. */
const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
/** One of those levels. */
type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Opens a logger that writes JSON lines to a descriptor. It writes synchronously, because the last line before a crash
 * is the most important one. It uses no pino transport: a transport is a worker thread, and a thread that is created
 * while a Pod's network namespace is entered would stay in that namespace.
 */
export function openPinoLogger(level: LogLevel, fd: number): Logger {
  const destination = pino.destination({ dest: fd, sync: true });
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: renderError },
  };
  return adapt(pino(options, destination));
}

function adapt(logger: PinoLogger): Logger {
  return {
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
    child: (fields: LogFields) => adapt(logger.child(fields)),
  };
}

/**
 * Renders an error with its code and the chain of its causes. The stack is added only to errors without a code: those
 * were not expected.
 */
function renderError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const code = 'code' in error ? { code: error.code } : { stack: error.stack };
  const cause = error.cause === undefined ? {} : { cause: renderError(error.cause) };
  return { name: error.name, message: error.message, ...code, ...cause };
}
