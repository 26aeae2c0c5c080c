import type { TarEntry } from '../../runtime/tar.ts';
import { type ImageSpec, imageBytes } from '../../tools/image/archive.ts';

/** Makes an image archive, which `ctr images import` takes. Equal input gives equal bytes. */
export function imageTar(image: ImageSpec): Buffer {
  return imageBytes(image);
}

/** An image of a static busybox with its applets as links; `entrypoint` is what a container runs by default. */
export function busyboxImage(reference: string, busybox: Uint8Array, entrypoint: readonly string[]): ImageSpec {
  const applets = ['sh', 'sleep', 'ping', 'ping6', 'wget', 'httpd', 'ip', 'cat', 'ls', 'nc'];
  const entries: readonly TarEntry[] = [
    { kind: 'folder', path: 'bin' },
    { kind: 'folder', path: 'etc' },
    { kind: 'folder', path: 'tmp', mode: 0o1777 },
    { kind: 'file', path: 'bin/busybox', content: busybox, mode: 0o755 },
    ...applets.map((applet): TarEntry => ({ kind: 'symlink', path: `bin/${applet}`, target: 'busybox' })),
    { kind: 'file', path: 'etc/passwd', content: Buffer.from('root:x:0:0:root:/:/bin/sh\n') },
  ];
  return { reference, entrypoint, env: ['PATH=/bin'], layers: [{ name: 'busybox', entries }] };
}
