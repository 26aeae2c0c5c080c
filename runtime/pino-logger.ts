import { type Logger as PinoLogger, pino } from 'pino';
import { showBytesInJson } from './byte-text.ts';
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

/** Most bytes of a log line, its line feed included. */
const MAX_LINE_BYTES = 32_768;
const MAX_KEY = 100;
/** Bytes for one character of JSON: a control character becomes an escape of six. */
const BYTES_PER_CHARACTER = 6;

/**
 * Returns a finished line of JSON that ends with a line feed, or a shorter one in its place: it keeps the level, the
 * time and the message, and the fields that fit; others are cut texts of their JSON. `cut` has the length of the
 * line before, in characters.
 */
function limitLine(line: string): string {
  if (line.length * 3 <= MAX_LINE_BYTES || Buffer.byteLength(line) <= MAX_LINE_BYTES) return line;
  const { level, time, msg, ...fields }: Record<string, unknown> = JSON.parse(line);
  const shown: Record<string, unknown> = { level, time };
  const ending = { msg: fitting(String(msg), MAX_TEXT.log), cut: line.length };
  let left = MAX_LINE_BYTES - bytesOf({ ...shown, ...ending });
  for (const [name, value] of Object.entries(fields)) {
    const key = limitText(name, MAX_KEY);
    const whole = bytesOf({ [key]: value });
    const part = whole <= left ? value : fitting(JSON.stringify(value), MAX_TEXT.log);
    const size = bytesOf({ [key]: part });
    if (size > left) break;
    shown[key] = part;
    left -= size;
  }
  return `${JSON.stringify({ ...shown, ...ending })}\n`;
}

/** Cuts a text so that its JSON has at most `maxBytes` bytes or a little more. */
function fitting(text: string, maxBytes: number): string {
  const cut = limitText(text, maxBytes);
  return bytesOf(cut) <= 2 * maxBytes ? cut : limitText(text, Math.floor(maxBytes / BYTES_PER_CHARACTER));
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
