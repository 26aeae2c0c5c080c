import { createHash } from 'node:crypto';

/** One entry of a tar archive. */
export type TarEntry =
  | { readonly kind: 'file'; readonly path: string; readonly content: Uint8Array; readonly mode?: number }
  | { readonly kind: 'folder'; readonly path: string; readonly mode?: number }
  | { readonly kind: 'symlink'; readonly path: string; readonly target: string };

/** What a container image is to be. */
export type ImageSpec = {
  /** 'localhost/busybox:1' */
  readonly name: string;
  readonly entries: readonly TarEntry[];
  readonly entrypoint: readonly string[];
};

const BLOCK = 512;
const TYPE = { file: '0', symlink: '2', folder: '5' } as const;

/**
 * Makes a docker-archive of one layer, which `ctr images import` takes: no Docker, no registry. Equal input gives equal
 * bytes.
 */
export function imageTar(image: ImageSpec): Buffer {
  const layer = tar(image.entries);
  const config = json({
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    os: 'linux',
    created: '1970-01-01T00:00:00Z',
    config: { Entrypoint: image.entrypoint, Env: ['PATH=/bin'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
    history: [{ created: '1970-01-01T00:00:00Z' }],
  });
  const configName = `${sha256(config)}.json`;
  const manifest = json([{ Config: configName, RepoTags: [image.name], Layers: ['layer.tar'] }]);
  return tar([
    { kind: 'file', path: configName, content: config },
    { kind: 'file', path: 'layer.tar', content: layer },
    { kind: 'file', path: 'manifest.json', content: manifest },
  ]);
}

/** An image of a static busybox with its applets as links; `entrypoint` is what a container runs by default. */
export function busyboxImage(name: string, busybox: Uint8Array, entrypoint: readonly string[]): ImageSpec {
  const applets = ['sh', 'sleep', 'ping', 'ping6', 'wget', 'httpd', 'ip', 'cat', 'ls', 'nc'];
  return {
    name,
    entrypoint,
    entries: [
      { kind: 'folder', path: 'bin' },
      { kind: 'folder', path: 'etc' },
      { kind: 'folder', path: 'tmp', mode: 0o1777 },
      { kind: 'file', path: 'bin/busybox', content: busybox, mode: 0o755 },
      ...applets.map((applet): TarEntry => ({ kind: 'symlink', path: `bin/${applet}`, target: 'busybox' })),
      { kind: 'file', path: 'etc/passwd', content: Buffer.from('root:x:0:0:root:/:/bin/sh\n') },
    ],
  };
}

/** Packs entries in the POSIX ustar format. @see pax(1), "ustar Interchange Format" */
export function tar(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = entry.kind === 'file' ? entry.content : new Uint8Array();
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
    return [header(entry, content.length), content, padding];
  });
  // Two empty blocks end an archive.
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function header(entry: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const path = entry.kind === 'folder' ? `${entry.path}/` : entry.path;
  if (path.length > 100) throw new Error(`${path}: longer than the 100 bytes of a ustar name`);
  const mode = entry.kind === 'symlink' ? 0o777 : (entry.mode ?? (entry.kind === 'folder' ? 0o755 : 0o644));
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;
  block.write(path, 0);
  block.write(octal(mode, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(size, 12), 124);
  block.write(octal(0, 12), 136);
  // The checksum counts its own field as spaces.
  block.write('        ', 148);
  block.write(TYPE[entry.kind], 156);
  if (entry.kind === 'symlink') block.write(entry.target, 157);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
