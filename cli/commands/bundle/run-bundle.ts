import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { timeoutSignal } from '../../../runtime/clock.ts';
import { messageOf } from '../../../runtime/error-text.ts';
import { release } from '../../../runtime/release.ts';
import { type TarEntry, tar } from '../../../runtime/tar.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { openOpsClient } from '../../agent/ops-client.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { openProgress } from '../../output/progress.ts';
import { renderWarning } from '../../output/render-error.ts';
import { jsonText } from '../../output/render-json.ts';
import type { BundleArgs } from './arguments.ts';
import { type BundlePart, boundText, type PartContent, valuePart } from './bundle-part.ts';
import { commandParts, graphPart } from './command-parts.ts';
import { fileParts } from './file-parts.ts';
import { redactText } from './redact-text.ts';
import { redactValue } from './redact-value.ts';
import { fastPathPart, toolParts } from './tool-parts.ts';

/** Name of standard output among files. */
const STDOUT = '-';

/** Time limit of one part: a stuck agent or nft must not block the other parts. */
const PART_MS = 60_000;

/** One collected file of the archive. */
type Collected = {
  readonly path: string;
  readonly text: string;
  readonly tookMs: number;
  /** Why the part is not in the archive: a fault (missing), or this machine does not have it (skipped). */
  readonly gap?: { readonly kind: 'missing' | 'skipped'; readonly why: string };
};

/**
 * Runs `bundle`: writes the archive.
 * @throws UserError REFUSED when it cannot be written; the signal's reason when interrupted
 */
export async function run({ output }: BundleArgs, context: CommandContext): Promise<ExitCode> {
  const { clock, signal, stdout, stderr, global } = context;
  const at = new Date(clock.nowMs());
  const stamp = at.toISOString().replace(/[-:]/g, '').slice(0, 15);
  const name = `tke-eni-bundle-${hostname()}-${stamp}`;
  const path = output ?? `${name}.tar.gz`;
  if (path === STDOUT) refuseTerminal(context);
  else refuseOnFault(() => checkTarget(path));
  const parts = [
    ...commandParts(context),
    graphPart(context),
    ...fileParts(global),
    ...toolParts(global),
    fastPathPart(global),
  ];
  if (!context.isRoot) {
    const text = 'not root: most of what helps is for root only, and will be missing';
    stderr.write(renderWarning(text, stderr.isColored));
  }
  const progress = openProgress(context);
  const collected: Collected[] = [];
  try {
    progress.show(`1/${parts.length} the agent`);
    // Query the agent for all its parts at once: with an agent that hangs, each query takes its whole timeout. Run
    // nothing else meanwhile: the parts that follow keep the process busy, which would delay the handling of the
    // answers.
    collected.push(...(await Promise.all(agentParts(context).map((part) => collect(part, context)))));
    signal.throwIfAborted();
    for (const part of parts) {
      progress.show(`${collected.length + 1}/${parts.length} ${part.path}`);
      collected.push(await collect(part, context));
      signal.throwIfAborted();
    }
    progress.show('packing');
    const archive = await pack(name, collected, at);
    signal.throwIfAborted();
    if (path === STDOUT) stdout.writeBytes(archive);
    else refuseOnFault(() => writeArchive(path, archive));
    // The reader of standard output may have closed it.
    signal.throwIfAborted();
  } finally {
    progress.clear();
  }
  for (const { path: part, gap } of collected) {
    if (gap === undefined) continue;
    const [why] = gap.why.split('\n');
    const text = gap.kind === 'skipped' ? `skipped: ${part}: ${why}` : `left out: ${part}: ${why}`;
    stderr.write(renderWarning(text, stderr.isColored));
  }
  if (path !== STDOUT) stdout.write(`${path}\n`);
  return collected.some(({ gap }) => gap?.kind === 'missing') ? EXIT.wrong : EXIT.ok;
}

/** @throws UserError REFUSED */
function refuseTerminal({ stdout }: Pick<CommandContext, 'stdout'>): void {
  if (!stdout.isTerminal) return;
  const next = 'redirect it: tke-eni bundle -o - > bundle.tar.gz, and kubectl exec without -t';
  throw new UserError('REFUSED', 'standard output is a terminal, and the archive is not text', next);
}

async function collect(part: BundlePart, { clock, signal }: CommandContext): Promise<Collected> {
  const startMs = clock.monotonicMs();
  const limit = timeoutSignal(PART_MS);
  const tookMs = () => Math.round(clock.monotonicMs() - startMs);
  const gap = (kind: 'missing' | 'skipped', why: string): Collected => ({
    path: part.path,
    text: '',
    tookMs: tookMs(),
    gap: { kind, why: redactText(why) },
  });
  try {
    const content = await beforeAbort(part.collect(AbortSignal.any([signal, limit])), AbortSignal.any([signal, limit]));
    if (content.kind === 'missing' || content.kind === 'skipped') return gap(content.kind, content.why);
    return { path: part.path, text: safeText(content), tookMs: tookMs() };
  } catch (error) {
    if (limit.aborted && !signal.aborted) return gap('missing', `not there after ${PART_MS / 1_000} s`);
    return gap('missing', messageOf(error));
  }
}

/** Rejects when the signal aborts. A part that does not check the signal continues in the background. */
async function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    // The result is not used any more; handle a later rejection.
    work.catch(() => undefined);
  }
}

function safeText(content: Exclude<PartContent, { readonly kind: 'missing' | 'skipped' }>): string {
  if (content.kind === 'safe') return content.text;
  if (content.kind === 'text') return redactText(boundText(content.text));
  return boundText(`${jsonText(redactValue(content.value), 1)}\n`);
}

async function pack(name: string, collected: readonly Collected[], at: Date): Promise<Uint8Array> {
  const manifest = {
    made: at.toISOString(),
    by: `tke-eni ${release}`,
    parts: collected.map(({ path, text, tookMs, gap }) => ({
      path,
      bytes: Buffer.byteLength(text),
      tookMs,
      ...(gap === undefined ? {} : { [gap.kind]: gap.why }),
    })),
  };
  const file = (path: string, text: string): TarEntry => ({
    kind: 'file',
    path: `tke-eni-bundle/${path}`,
    content: Buffer.from(text),
    mode: 0o600,
  });
  const entries = [
    file('manifest.json', `${jsonText({ name, ...manifest }, 2)}\n`),
    ...collected.map(({ path, text, gap }) =>
      gap === undefined ? file(path, text) : file(`${path}.${gap.kind}`, `${gap.why}\n`),
    ),
  ];
  return promisify(gzip)(tar(entries, Math.floor(at.getTime() / 1_000)));
}

function refuseOnFault(work: () => void): void {
  try {
    work();
  } catch (error) {
    const why = messageOf(error);
    throw new UserError(
      'REFUSED',
      `the archive cannot be written: ${why}`,
      'name another file with -o, or - for standard output',
      {
        cause: error,
      },
    );
  }
}

/** Returns the parts that the running agent answers from memory: pool, summary and flight recorder. */
function agentParts({ global }: Pick<CommandContext, 'global'>): readonly BundlePart[] {
  const query = (path: string, call: 'pool' | 'summary' | 'recorder'): BundlePart => ({
    path,
    collect: async () => {
      using client = await openOpsClient(global);
      return valuePart(call === 'recorder' ? await client.recorder('') : await client[call]());
    },
  });
  return [
    query('agent/pool.json', 'pool'),
    query('agent/summary.json', 'summary'),
    query('agent/recorder.json', 'recorder'),
  ];
}

/**
 * Writes a file atomically, readable by its owner only. It writes to a temporary name beside it first. That name is
 * random and must not exist, so that no link placed there is followed: the folder may be /tmp.
 * @throws the file system's own error
 */
function writeArchive(path: string, content: Uint8Array): void {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.part`;
  const fd = openSync(temporary, 'wx', 0o600);
  try {
    try {
      writeFileSync(fd, content);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/**
 * Checks, before any part is collected, whether an archive can be written to a path. An existing path must be a regular
 * file: root's rename would replace /dev/null by the archive.
 * @throws Error, the file system's own too
 */
function checkTarget(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isFile())
    throw new Error(`${path} is ${stat.isDirectory() ? 'a folder' : 'no file'}`);
  accessSync(dirname(path), constants.W_OK | constants.X_OK);
}
