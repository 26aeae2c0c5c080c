import { type Logger as PinoLogger, pino } from 'pino';
import { showBytesInJson } from './byte-text.ts';
import { limitLine } from './limit-line.ts';
import { limitText, MAX_TEXT } from './limit-text.ts';
import { limitValue } from './limit-value.ts';
import type { LogFields, Logger } from './log.ts';

/** Values of `--log-level`, from the most lines to the fewest. */
const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
/** One of those levels. */
type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Opens a logger that writes JSON lines to a descriptor. It writes synchronously, because the last line before a crash
 * is the most important one. It uses no pino transport: a transport is a worker thread, and a thread that is created
 * while a Pod's network namespace is entered would stay in that namespace. Each value is bounded (`limitValue`), and so
 * is the finished line (`limitLine`); spans, whose names end in `Ms`, are written in whole milliseconds.
 */
export function openPinoLogger(level: LogLevel, fd: number): Logger {
  const destination = pino.destination({ dest: fd, sync: true });
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  const shown = { write: (line: string) => destination.write(limitLine(showBytesInJson(line))) };
  return adapt(pino(options, shown));
}

function adapt(logger: PinoLogger): Logger {
  return {
    debug: (message, fields) => logger.debug(limited(fields), limitText(message, MAX_TEXT.log)),
    info: (message, fields) => logger.info(limited(fields), limitText(message, MAX_TEXT.log)),
    warn: (message, fields) => logger.warn(limited(fields), limitText(message, MAX_TEXT.log)),
    error: (message, fields) => logger.error(limited(fields), limitText(message, MAX_TEXT.log)),
    child: (fields: LogFields) => adapt(logger.child(limited(fields))),
  };
}

function limited(fields: LogFields = {}): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, limitField(name, value)]));
}

function limitField(name: string, value: unknown): unknown {
  if (typeof value === 'number' && name.endsWith('Ms')) return Math.round(value);
  return limitValue(value);
}
