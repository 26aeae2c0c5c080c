import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plugin, Sandbox } from '../agent/api/messages.ts';
import { writeFileAtomically } from '../runtime/atomic-file.ts';
import { ensureFolder } from '../runtime/folder.ts';
import type { Backend } from './client/backend.ts';

/**
 * Leaves a DEL for the agent to find when it is back: it drains the folder before it serves, and watches it. Idempotent:
 * one attachment has one file. Durable when it returns.
 *
 * @returns the file's path.
 * @throws the file system's own error (ENOSPC, EROFS, …).
 */
export function spoolDeletion(directory: string, deletion: Deletion): string {
  ensureFolder(directory, 0o700);
  const path = join(directory, `${keyOf(deletion.sandbox)}.json`);
  const { sandbox, plugin, network, writtenAtMs, writtenAtBootMs } = deletion;
  const { containerId, ifName, netns, podNamespace, podName, podUid } = sandbox;
  const pod = { podNamespace, podName, podUid };
  const content = { containerId, ifName, netns, network, plugin, ...pod, writtenAtMs, writtenAtBootMs };
  writeFileAtomically(path, `${JSON.stringify(content)}\n`, 0o600);
  return path;
}

/**
 * Takes a spooled DEL back that the agent has done after all. Left there it would be done again, and a runtime may by
 * then have added the same container id and interface name anew. That the agent took the file first is no failure.
 */
export function forgetDeletion(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The DEL is done, which is what the runtime asked for; the agent releases by lease and knows this one no more.
  }
}

/** Finds the folder beside the agent's socket; with a TCP backend, beside the socket it has by default. */
export function spoolDirectory(backend: Backend): string {
  return join(backend.kind === 'unix' ? dirname(backend.path) : '/run/tke-eni', 'deletions');
}

/** Describes a DEL that could not be delivered. */
export type Deletion = {
  readonly plugin: Plugin;
  readonly network: string;
  readonly sandbox: Sandbox;
  /** Milliseconds since the epoch, for people. */
  readonly writtenAtMs: number;
  /** Milliseconds since boot, for the agent: which of an ADD and this DEL came first, wherever the wall clock was set. */
  readonly writtenAtBootMs: number;
};

/** Names the file of an attachment; a hash, for an interface name may hold any byte but a few. */
function keyOf({ containerId, ifName }: Sandbox): string {
  return createHash('sha256').update(`${containerId}\0${ifName}`).digest('hex').slice(0, 32);
}
