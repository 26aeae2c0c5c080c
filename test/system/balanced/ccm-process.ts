import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Child } from '../../../sim/support/child.ts';
import { childEnv } from '../../../sim/support/child-env.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { executablePath } from '../../support/executables.ts';
import type { Cluster } from '../cluster.ts';
import { type Door, openDoor } from '../door.ts';
import type { VpcCloud } from '../vpc-cloud.ts';

const ROLE = 'tke-cloud-controller-manager';
const KUBE_PORT = 6_443;
const CLOUD_PORT = 8_443;

/** A cluster without what Services depend on, and its cloud. */
export type Unbalanced = { readonly cloud: VpcCloud; readonly cluster: Cluster };

/** One replica of the cloud controller manager, packaged, in a namespace of its own. */
export class CcmProcess {
  readonly name: string;
  readonly #room: NetnsView;
  readonly #doors: readonly Door[];
  readonly #flags: readonly string[];
  #child: Child | undefined;
  #earlier = '';

  private constructor(name: string, room: NetnsView, doors: readonly Door[], flags: readonly string[]) {
    this.name = name;
    this.#room = room;
    this.#doors = doors;
    this.#flags = flags;
  }

  /** Makes a replica that is not started yet; its files are in a folder `name` of `dir`. */
  static async make(
    { cloud, cluster }: Unbalanced,
    dir: string,
    name: string,
    flags: Readonly<Record<string, string>>,
  ) {
    const room = await cloud.createRoom(name);
    const kube = openDoor(room, KUBE_PORT, cluster.server.accept);
    const api = openDoor(room, CLOUD_PORT, (socket) => cloud.server.accept(socket));
    const own = join(dir, name);
    mkdirSync(own);
    const { secretId, secretKey } = cloud.key;
    writeFileSync(join(own, 'key.json'), JSON.stringify({ secretId, secretKey }));
    const all: Readonly<Record<string, string>> = {
      clusterid: 'cls-system00',
      region: 'ap-guangzhou',
      'vpc-id': cloud.vpcId,
      endpoint: api.address,
      protocol: 'http',
      credentials: 'file',
      'credentials-file': join(own, 'key.json'),
      kubeconfig: cluster.kubeconfig(ROLE, own, kube.address).path,
      'load-balancers': 'clb',
      'leader-elect-lease-duration': '5s',
      'leader-elect-retry-period': '300ms',
      'metrics-address': '',
      'log-level': 'debug',
      ...flags,
    };
    const argv = Object.entries(all).map(([flag, value]) => `--${flag}=${value}`);
    return new CcmProcess(name, room, [kube, api], argv);
  }

  /** Starts it, or starts it again. */
  start(): void {
    this.#earlier = this.logs();
    const env = { ...childEnv(), POD_NAME: this.name };
    this.#child = this.#room.start([executablePath(ROLE), ...this.#flags], { env });
  }

  /** Ends it without a chance to tidy up. */
  async kill(): Promise<void> {
    await this.#child?.stop('SIGKILL');
  }

  /** True when it said last that it leads. */
  leads(): boolean {
    const log = this.#child?.isRunning === true ? this.#child.stdout : '';
    return log.lastIndexOf('"msg":"leading"') > log.lastIndexOf('"msg":"stopped leading"');
  }

  /** All that it ever wrote: its log. */
  logs(): string {
    return `${this.#earlier}${this.#child?.stdout ?? ''}${this.#child?.stderr ?? ''}`;
  }

  /** Ends it for good. */
  async close(): Promise<void> {
    await this.kill();
    for (const door of this.#doors) door.close();
  }
}
