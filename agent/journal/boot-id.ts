import { readFileSync } from 'node:fs';

/** Reads the id that the kernel drew at boot; another one means that every sandbox of before is gone. @see random(4) */
export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
