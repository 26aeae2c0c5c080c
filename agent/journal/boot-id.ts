import { readFileSync } from 'node:fs';

/**
 * Reads the id that the kernel chose at boot. If it differs from a recorded one, the recorded sandboxes no longer
 * exist.
 * @see random(4)
 */
export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
