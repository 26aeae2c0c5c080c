import type { ChildProcess, fork } from 'node:child_process';
import { EventEmitter } from 'node:events';

/** What AVA and its worker say to each other, as far as it is read here. */
type Message = { readonly ava?: { readonly type: string; readonly options?: { readonly file: string } } };

/** What the worker says first, and once more when its process may run another file. */
const READY = 'ready-for-options';

/** A process runs no other file after one of these. */
const FAILURES: ReadonlySet<string> = new Set([
  ...['test-failed', 'hook-failed', 'uncaught-exception', 'unhandled-rejection', 'process-exit', 'internal-error'],
]);

/** A process that runs test files: those so far, and what AVA takes for the process of the last. */
type Host = {
  readonly process: ChildProcess;
  readonly files: string[];
  last: FileProcess;
  /** Whether AVA takes its last file for ended. */
  isOver: boolean;
};

class FileProcess extends EventEmitter {
  readonly stdout = new EventEmitter();
  readonly stderr = new EventEmitter();
  readonly #process: ChildProcess;
  readonly #files: string[];
  hasFailed = false;

  constructor(process: ChildProcess, files: string[]) {
    super();
    this.#process = process;
    this.#files = files;
  }

  get connected(): boolean {
    return this.#process.connected;
  }

  send(message: Message, done: (error: Error | null) => void): boolean {
    const file = message.ava?.options?.file;
    if (file !== undefined) this.#files.push(file);
    return this.#process.send(message, done);
  }

  kill(): boolean {
    return this.#process.kill();
  }
}

/**
 * Returns a `fork` for AVA by which a test file runs in a process that another file has left as it was
 * (tools/begin-file.ts), if there is one. What both load is then loaded once, and compiled for speed.
 */
export function sharingFork(real: typeof fork): typeof fork {
  const idle: Host[] = [];
  // Not before AVA is done: it waits for their end.
  process.once('beforeExit', () => {
    for (const host of idle) {
      hold(host.process, 'ref');
      host.process.disconnect();
    }
  });
  return (...args) => {
    const host = idle.pop() ?? start(Reflect.apply(real, undefined, args), idle);
    if (host.files.length > 0) {
      const file = new FileProcess(host.process, host.files);
      host.last = file;
      host.isOver = false;
      hold(host.process, 'ref');
      setImmediate(() => file.emit('message', { ava: { type: READY } } satisfies Message));
    }
    return host.last as unknown as ChildProcess;
  };
}

function start(process: ChildProcess, idle: Host[]): Host {
  const files: string[] = [];
  const host: Host = { process, files, last: new FileProcess(process, files), isOver: false };
  process.on('message', (message: Message) => {
    const type = message.ava?.type ?? '';
    if (FAILURES.has(type)) fail(host);
    if (type === READY && files.length > 0) release(host, idle);
    else host.last.emit('message', message);
  });
  process.on('error', (error) => host.last.emit('error', error));
  process.on('exit', (code, signal) => {
    if (idle.includes(host)) idle.splice(idle.indexOf(host), 1);
    if (code !== 0) fail(host);
    if (code !== 0 && host.isOver) {
      console.error(`the process of ${files.join(' ')} ended with ${signal ?? code}`);
      globalThis.process.exitCode = 1;
    }
    host.last.emit('exit', code, signal);
  });
  process.stdout?.on('data', (chunk) => host.last.stdout.emit('data', chunk));
  process.stderr?.on('data', (chunk) => host.last.stderr.emit('data', chunk));
  return host;
}

/** Says once which files ran before the one that failed. */
function fail({ files, last }: Host): void {
  if (!last.hasFailed && files.length > 1)
    console.error(`${files.at(-1)} ran in the process of ${files.slice(0, -1).join(' ')}`);
  last.hasFailed = true;
}

function release(host: Host, idle: Host[]): void {
  if (host.last.hasFailed) {
    host.process.disconnect();
  } else {
    idle.push(host);
    hold(host.process, 'unref');
  }
  host.isOver = true;
  // AVA's file is over; the process lives on.
  host.last.emit('exit', 0, null);
}

/** With `unref` a process does not keep this one from its end. */
function hold(process: ChildProcess, how: 'ref' | 'unref'): void {
  for (const one of [process, process.channel, process.stdout, process.stderr]) {
    if (one !== null && one !== undefined) Reflect.apply(Reflect.get(one, how), one, []);
  }
}
