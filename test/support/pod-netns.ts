import { NetnsView } from '../../sim/support/netns.ts';
import { run } from '../../sim/support/run.ts';
import { deleteNetnsNames } from '../../sim/support/run-names.ts';
import { waitUntil } from './wait-until.ts';

/** The other end of a veth: the name of its namespace, and its index there. */
type Peer = { readonly netns: string; readonly index: string };

/** As `ip -o link` prints a veth whose other end is in a namespace with a name. */
const VETH = /^\d+: [^@]+@if(?<index>\d+): .* link-netns (?<netns>\S+)/;

/** A Pod sandbox's network namespace without a runtime. The caller closes it. */
export class PodNetns extends NetnsView {
  /**
   * Removes the namespace and every link in it. Idempotent. The kernel deletes the links some time after the name, on a busy
   * machine much later: close returns once the other ends are gone.
   * @throws Error when they stay, because a process or a mount still holds the namespace
   */
  async close(): Promise<void> {
    const peers = await this.#peers();
    await deleteNetnsNames([this.name]);
    for (const { netns, index } of peers) {
      const isGone = async (): Promise<boolean> =>
        !(await linksOf(netns)).some((line) => line.startsWith(`${index}: `));
      await waitUntil(isGone, { what: `link ${index} of ${netns} to go with namespace ${this.name}` });
    }
  }

  async #peers(): Promise<readonly Peer[]> {
    const found = (await linksOf(this.name)).map((line) => VETH.exec(line)?.groups);
    return found.flatMap((groups) => {
      const { netns, index } = groups ?? {};
      return netns === undefined || index === undefined ? [] : [{ netns, index }];
    });
  }
}

/** Lines of `ip -o link`; none when the namespace is gone. */
async function linksOf(netns: string): Promise<readonly string[]> {
  const { code, stdout } = await new NetnsView(netns).tryRun(['ip', '-o', 'link']);
  return code === 0 ? stdout.split('\n') : [];
}

/**
 * Makes a network namespace as a runtime would hand it to a CNI plugin: `lo` is up, nothing else is in it.
 * Give it a name that starts with the VPC's prefix: then the VPC's `close` removes it too.
 */
export async function createPodNetns(name: string): Promise<PodNetns> {
  await run(['ip', '-batch', '-'], { input: `netns add ${name}\n` });
  const pod = new PodNetns(name);
  await pod.ip('link', 'set', 'lo', 'up');
  return pod;
}
