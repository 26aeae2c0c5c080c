import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type GuestFiles, packGuest } from './pack-guest.ts';
import { REPORT } from './report.ts';

/** What a guest needs of this machine. */
type GuestKernel = { readonly kernel: string; readonly modules: string };

/** How a guest ended. */
type GuestEnd = {
  /** Its console. */
  readonly console: string;
  /** What its script reported by `report`, in order. */
  readonly reports: readonly Readonly<Record<string, unknown>>[];
  /** Exit code of the script; undefined when the guest did not get so far. */
  readonly code: number | undefined;
};

const COMMAND_LINE = 'console=ttyS0 quiet panic=-1 edd=off no_timer_check tsc=reliable mitigations=off rdinit=/init';

/** Finds the kernel for guests: a vmlinuz and the folder of its modules, by GUEST_KERNEL and GUEST_MODULES. */
export function findGuestKernel(): GuestKernel | undefined {
  const { GUEST_KERNEL: kernel, GUEST_MODULES: modules } = process.env;
  return kernel === undefined || modules === undefined ? undefined : { kernel, modules };
}

/**
 * Boots an emulated machine with another kernel, and runs a script of the project in it. Emulation needs no rights and no hardware,
 * and is slow: a minute, two on a busy machine.
 * @param folder for the initial file system; the caller deletes it
 */
export async function runGuest(
  guest: GuestKernel,
  files: GuestFiles,
  folder: string,
  timeoutMs: number,
): Promise<GuestEnd> {
  const initrd = join(folder, 'initrd');
  writeFileSync(initrd, await packGuest(guest.modules, files));
  const args = [
    ...['-accel', 'tcg', '-cpu', 'max', '-smp', '1', '-m', '1536', '-nodefaults', '-no-reboot', '-display', 'none'],
    ...['-serial', 'stdio', '-kernel', guest.kernel, '-initrd', initrd, '-append', COMMAND_LINE],
  ];
  const child = spawn(process.env['GUEST_QEMU'] ?? 'qemu-system-x86_64', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  let console = '';
  child.stdout.on('data', (chunk: Buffer) => (console += chunk.toString('latin1')));
  child.stderr.on('data', (chunk: Buffer) => (console += chunk.toString('latin1')));
  try {
    await new Promise((resolve, reject) => child.once('close', resolve).once('error', reject));
  } finally {
    clearTimeout(timer);
  }
  const lines = console.split(/\r?\n/);
  const reports = lines.filter((line) => line.startsWith(REPORT)).map((line) => JSON.parse(line.slice(REPORT.length)));
  const end = lines.findLast((line) => line.startsWith('GUEST-END '));
  return { console, reports, code: end === undefined ? undefined : Number(end.split(' ')[1]) };
}
