import { Child } from '../../../sim/support/child.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { run } from '../../../sim/support/run.ts';
import { waitUntil } from '../../support/wait-until.ts';

/**
 * A mount namespace in which network namespaces have the names that a record has them by, whatever they are called
 * elsewhere. It goes with the process that holds it.
 */
export type MountRoom = {
  /** Put before a command line that is to run in it. */
  readonly wrap: readonly string[];
  /** Gives a network namespace a name in the room, and returns the path. */
  bind(netns: NetnsView, name: string): Promise<string>;
  /** Takes the name away. */
  unbind(name: string): Promise<void>;
  close(): Promise<void>;
};

/** Every system has it, empty; the room has a folder of its own there. */
const FOLDER = '/media';

/** Makes a room. The caller closes it. */
export async function openMountRoom(): Promise<MountRoom> {
  const script = `mount -t tmpfs none ${FOLDER} && echo open && exec sleep infinity`;
  const holder = new Child(['unshare', '--mount', 'sh', '-c', script]);
  await waitUntil(() => holder.stdout.includes('open'), { what: 'a mount namespace' });
  const wrap = ['nsenter', `--mount=/proc/${holder.pid}/ns/mnt`, '--'];
  return {
    wrap,
    bind: async (netns, name) => {
      const path = `${FOLDER}/${name}`;
      // Entered first: the name that it has outside is not to be seen in the room.
      await run(netns.argv([...wrap, 'sh', '-ec', `touch ${path}; mount --bind /proc/self/ns/net ${path}`]));
      return path;
    },
    unbind: async (name) => void (await run([...wrap, 'umount', `${FOLDER}/${name}`])),
    close: async () => void (await holder.stop('SIGKILL')),
  };
}
