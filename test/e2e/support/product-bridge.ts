import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject, NetnsView } from '../../../sim/support/netns.ts';
import { execCni } from '../../support/exec-cni.ts';
import type { PodNetns } from '../../support/pod-netns.ts';
import { ipsOf } from './cni-answers.ts';

const PLUGINS = '/usr/lib/cni';
const NETWORK = 'tke-bridge';

/** Whether Debian's package containernetworking-plugins is here. */
export const HAS_REFERENCE_PLUGINS: boolean = ['bridge', 'host-local'].every((name) => existsSync(join(PLUGINS, name)));

/** A Pod of the product's network. */
export type ProductPod = {
  readonly containerId: string;
  readonly netns: PodNetns;
  readonly ip: string;
  /** What the product answered. */
  readonly result: JsonObject;
};

/** The product's network tke-bridge on a node: the CNI project's plugins bridge and host-local. */
export class ProductBridge {
  /** Folder of host-local's files. */
  readonly dir: string;
  #node: NetnsView;
  #conf: object;

  /** @param dataDir folder for host-local's files */
  constructor(node: NetnsView, block: { readonly cidr: string; readonly gateway: string }, dataDir: string) {
    this.#node = node;
    this.dir = join(dataDir, NETWORK);
    // What tke-bridge-agent writes into 20-tke-bridge.conflist, and its rule.
    this.#conf = {
      ...{ cniVersion: '0.3.1', name: NETWORK, type: 'bridge', bridge: 'cbr0', mtu: 1500, addIf: 'eth0' },
      ...{ isGateway: true, forceAddress: true, ipMasq: false, hairpinMode: false, promiscMode: true },
      ipam: {
        ...{ type: 'host-local', subnet: block.cidr, gateway: block.gateway, routes: [{ dst: '0.0.0.0/0' }] },
        dataDir,
      },
    };
  }

  /** Gives a sandbox its network. @throws Error with the answer */
  async add(netns: PodNetns, containerId = randomBytes(32).toString('hex')): Promise<ProductPod> {
    const answer = await this.#call('ADD', containerId, netns);
    if (answer.result === undefined) throw new Error(`ADD of the product failed: ${answer.stdout}${answer.stderr}`);
    return { containerId, netns, ip: ipsOf(answer.result)[0] ?? '', result: answer.result };
  }

  /** Takes a sandbox's network away. @throws Error with the answer */
  async delete({ containerId, netns }: Pick<ProductPod, 'containerId' | 'netns'>): Promise<void> {
    const answer = await this.#call('DEL', containerId, netns);
    if (answer.exitCode !== 0) throw new Error(`DEL of the product failed: ${answer.stdout}${answer.stderr}`);
  }

  /** Container ids by reserved address. */
  reservations(): Readonly<Record<string, string>> {
    const names = existsSync(this.dir) ? readdirSync(this.dir).filter((name) => /^[\d.]+$/.test(name)) : [];
    return Object.fromEntries(
      names.sort().map((ip) => [ip, readFileSync(join(this.dir, ip), 'utf8').split('\r\n')[0] ?? '']),
    );
  }

  #call(command: 'ADD' | 'DEL', containerId: string, netns: PodNetns) {
    return execCni({
      ...{ binary: join(PLUGINS, 'bridge'), command, conf: this.#conf, netns: this.#node.path },
      env: { CNI_CONTAINERID: containerId, CNI_NETNS: netns.path, CNI_IFNAME: 'eth0', CNI_PATH: PLUGINS },
    });
  }
}
