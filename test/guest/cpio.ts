/** One entry of an archive: a folder, a symbolic link, or a file with its content. */
export type CpioEntry =
  | { readonly kind: 'folder'; readonly path: string }
  | { readonly kind: 'link'; readonly path: string; readonly to: string }
  | { readonly kind: 'file'; readonly path: string; readonly content: Uint8Array; readonly isExecutable: boolean };

const TYPE = { folder: 0o040755, link: 0o120777, file: 0o100644, executable: 0o100755 } as const;

/**
 * Packs entries into a cpio archive that the kernel unpacks as its initial file system. A folder comes before what is in it.
 * @see Documentation/driver-api/early-userspace/buffer-format.rst, format "newc"
 */
export function packCpio(entries: readonly CpioEntry[]): Buffer {
  const parts = entries.flatMap((entry, at) => record(at + 1, entry.path, modeOf(entry), contentOf(entry)));
  return Buffer.concat([...parts, ...record(0, 'TRAILER!!!', 0, new Uint8Array())]);
}

function modeOf(entry: CpioEntry): number {
  return entry.kind === 'file' && entry.isExecutable ? TYPE.executable : TYPE[entry.kind];
}

function contentOf(entry: CpioEntry): Uint8Array {
  if (entry.kind === 'file') return entry.content;
  return entry.kind === 'link' ? Buffer.from(entry.to) : new Uint8Array();
}

function record(inode: number, path: string, mode: number, content: Uint8Array): readonly Uint8Array[] {
  const name = Buffer.from(`${path}\0`);
  const fields = [inode, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, name.length, 0];
  const header = Buffer.from(`070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`);
  return [header, name, padding(header.length + name.length), content, padding(content.length)];
}

/** Headers and contents begin at multiples of four bytes. */
function padding(length: number): Uint8Array {
  return new Uint8Array((4 - (length % 4)) % 4);
}
