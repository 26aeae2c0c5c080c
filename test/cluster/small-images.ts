import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { busyboxImage, imageTar } from '../support/image-tar.ts';
import { echoScript } from './workloads/echo-script.ts';

/** Image of Pod sandboxes: it sleeps. */
export const PAUSE_IMAGE = 'localhost/pause:1';
/** Image for Pods of tests: a static busybox that runs its arguments, or sleeps; every applet is a link in /bin. */
export const BUSYBOX_IMAGE = 'localhost/busybox:1';

/** Image for Pods of manifests without a command: the echo server on port 80, as a web server's image serves by itself. */
export const WEB_IMAGE = 'localhost/web:1';

const BUSYBOX = '/bin/busybox';

/** Writes the images that every node has, as docker-archives into a folder; returns their paths. */
export function writeSmallImages(dir: string): readonly string[] {
  const busybox = readFileSync(BUSYBOX);
  return [
    writeImage(join(dir, 'pause.tar'), PAUSE_IMAGE, busybox, ['/bin/sh', '-c', SLEEP]),
    writeImage(join(dir, 'busybox.tar'), BUSYBOX_IMAGE, busybox, [
      '/bin/sh',
      '-c',
      `[ $# = 0 ] || exec "$@"; ${SLEEP}`,
      'sh',
    ]),
    writeImage(join(dir, 'web.tar'), WEB_IMAGE, busybox, ['/bin/sh', '-c', `${ENDING}{ ${echoScript(80)}; } & wait`]),
  ];
}

/** The first process of a PID namespace is deaf to SIGTERM unless it listens. */
const ENDING = 'trap "exit 0" TERM INT; ';
const SLEEP = `${ENDING}while :; do sleep 2147483 & wait; done`;

function writeImage(path: string, name: string, busybox: Uint8Array, entrypoint: readonly string[]): string {
  writeFileSync(path, imageTar(busyboxImage(name, busybox, entrypoint)));
  return path;
}
