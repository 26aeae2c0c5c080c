import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plugin, Sandbox } from '../agent/api/messages.ts';
import { writeFileAtomically } from '../runtime/atomic-file.ts';
import { reclaimFolder } from '../runtime/folder.ts';
import type { Backend } from './client/backend.ts';

/**
 * Stores a DEL for the agent, which drains the folder before it serves, and watches it. Idempotent: one attachment has
 * one file. Durable when it returns.
 *
 * @returns the path of the file.
 * @throws the file system's own error (ENOSPC, EROFS, …).
 */
export function spoolDeletion(directory: string, deletion: Deletion): string {
  reclaimFolder(directory, 0o700);
  const path = join(directory, `${keyOf(deletion.sandbox)}.json`);
  const { sandbox, plugin, network, writtenAtMs, writtenAtBootMs } = deletion;
  const { containerId, ifName, netns, podNamespace, podName, podUid } = sandbox;
  const pod = { podNamespace, podName, podUid };
  const content = { containerId, ifName, netns, network, plugin, ...pod, writtenAtMs, writtenAtBootMs };
  writeFileAtomically(path, `${JSON.stringify(content)}\n`, 0o600);
  return path;
}

/**
 * Removes a stored DEL that the agent has processed after all. Otherwise it would be processed again, and by then a
 * runtime may have added the same container id and interface name again. No failure when the agent removed the file
 * first.
 */
export function removeDeletion(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The DEL is done, as the runtime requested. A second DEL has no effect: the agent releases by lease, and this
    // lease is deleted.
  }
}

/** Returns the folder beside the agent's socket; for a TCP backend, beside its default socket. */
export function spoolDirectory(backend: Backend): string {
  return join(backend.kind === 'unix' ? dirname(backend.path) : '/run/tke-eni', 'deletions');
}

/** A DEL that could not be delivered. */
export type Deletion = {
  readonly plugin: Plugin;
  readonly network: string;
  readonly sandbox: Sandbox;
  /** Milliseconds since the epoch, for people. */
  readonly writtenAtMs: number;
  /** Milliseconds since boot, for the agent: they order an ADD and this DEL, whatever happens to the wall clock. */
  readonly writtenAtBootMs: number;
};

/** Returns the file name of an attachment. It is a hash, because an interface name may contain almost any byte. */
function keyOf({ containerId, ifName }: Sandbox): string {
  return createHash('sha256').update(`${containerId}\0${ifName}`).digest('hex').slice(0, 32);
}
