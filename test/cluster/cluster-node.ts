import { copyFileSync, mkdirSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NetnsView } from '../../sim/support/netns.ts';
import { type RunOptions, type RunResult, run } from '../../sim/support/run.ts';
import { killQuietly } from '../../sim/support/run-names.ts';
import { cgroupPids, removeCgroup } from '../support/cgroup.ts';
import { containerdConfig } from '../support/containerd-config.ts';
import { openCriClient } from '../support/cri-client.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type Flags, kubeProxyArgv } from './control-plane.ts';
import { Daemon } from './daemon.ts';
import { type KubeletFacts, kubeletArgv, kubeletConfig } from './kubelet-config.ts';
import { Machine } from './machine.ts';
import { makeNodeCgroup } from './node-cgroup.ts';
import { bootLines, diskLines, NODE_KUBE_DIR } from './node-mounts.ts';
import { PAUSE_IMAGE } from './small-images.ts';

/** What a node of a real cluster is made of. */
type ClusterNodeParts = {
  readonly netns: NetnsView;
  /** Empty folder for its disk, its configuration and its logs. */
  readonly dir: string;
  readonly kubeAssets: string;
  readonly facts: Omit<KubeletFacts, 'clientCaFile' | 'cgroup'>;
  /** Certificate that the API server shows to kubelets. */
  readonly kubeletClientCa: string;
  /** Kubeconfigs, as text. */
  readonly kubeconfigs: { readonly kubelet: string; readonly kubeProxy: string };
  /** Flags of kube-proxy that win over the usual ones. */
  readonly kubeProxyFlags: Flags;
  /** With one, Debian's ptp plugin gives its Pods addresses of it; without, the node has no CNI plugin at all. */
  readonly podCidr?: string;
  /** Makes the network again, as after a power cut: a fresh namespace with all NICs plugged in, and what listens there. */
  readonly renewNetwork: () => Promise<void>;
};

const CLIENT_CA = '/etc/kubernetes/kubelet-client-ca.crt';
/** Where containerd tells its metrics, below `/v1/metrics`, on the node's loopback. */
export const CONTAINERD_METRICS = '127.0.0.1:1338';
/** Where kubelet finds its runtime. */
export const CONTAINERD_SOCKET = '/run/containerd/containerd.sock';
const REFERENCE_PLUGINS = '/usr/lib/cni';
const IMPORT = ['ctr', '-n', 'k8s.io', 'images', 'import', '-'] as const;

/** A node: a machine of its own namespaces with containerd, kubelet and kube-proxy. Made by `startRealCluster`. */
export class ClusterNode {
  readonly name: string;
  /** Its network, from outside. */
  readonly ns: NetnsView;
  /** Its namespaces and process 1. */
  readonly machine: Machine;
  readonly containerd: Daemon;
  readonly kubelet: Daemon;
  readonly kubeProxy: Daemon;
  #parts: ClusterNodeParts;
  #proxyFlags: Flags;

  constructor(parts: ClusterNodeParts) {
    this.#parts = parts;
    this.name = parts.facts.name;
    this.ns = parts.netns;
    const mounts = bootLines(join(parts.dir, 'disk'), parts.kubeAssets);
    this.machine = new Machine({ name: this.name, netns: parts.netns, mounts });
    const { facts } = parts;
    this.#proxyFlags = parts.kubeProxyFlags;
    this.containerd = this.#daemon('containerd', () => ['containerd', '-c', '/etc/containerd/config.toml']);
    this.kubelet = this.#daemon('kubelet', () => kubeletArgv(`${NODE_KUBE_DIR}/kubelet`, this.#facts));
    this.kubeProxy = this.#daemon('kube-proxy', () =>
      kubeProxyArgv(`${NODE_KUBE_DIR}/kube-proxy`, facts.name, this.#proxyFlags),
    );
  }

  /** Address of its primary NIC. */
  get ip(): string {
    return this.#parts.facts.ip;
  }

  /** The instance of the cloud that it is. */
  get instanceId(): string {
    return this.#parts.facts.instanceId;
  }

  /** Makes the disk, boots, and waits for the runtime with the given images. Called once, by the cluster. */
  async install(images: readonly string[]): Promise<void> {
    mkdirSync(this.#disk);
    await run(['sh', '-e'], { input: diskLines(this.#disk).join('\n') });
    this.#writeConfiguration();
    await this.boot();
    await Promise.all(images.map((path) => this.importImage(path)));
  }

  /** Boots it and starts containerd, which it waits for; kubelet and kube-proxy are not started. */
  async boot(): Promise<void> {
    makeNodeCgroup(this.#cgroup);
    await this.machine.boot();
    this.containerd.start();
    await this.awaitRuntime();
  }

  /**
   * Waits until containerd answers kubelets. Its socket is there before: for as long as it recovers its Pods the CRI answers
   * that it is not initialized yet, and a kubelet that begins then ends at once. @throws Error with the end of its log
   */
  async awaitRuntime(): Promise<void> {
    await waitUntil(
      async () => {
        if (!this.containerd.isRunning) throw new Error(`${this.name}: containerd ended: ${this.containerd.logs()}`);
        return await answersCri(this.machine.insidePath(CONTAINERD_SOCKET));
      },
      { what: `${this.name}: containerd`, timeoutMs: 30_000, everyMs: 50, explain: () => tail(this.containerd.logs()) },
    );
  }

  /** Starts kubelet and kube-proxy. */
  startKubelet(): void {
    this.kubelet.start();
    this.kubeProxy.start();
  }

  /** Starts kube-proxy again with other flags. One of another mode removes the rules of the former one. */
  async replaceKubeProxy(flags: Flags): Promise<void> {
    await this.kubeProxy.kill('SIGTERM');
    this.#proxyFlags = flags;
    this.kubeProxy.start();
  }

  /** Runs a command on the node, with its files, processes and network; answers with its standard output. @throws RunError */
  exec(argv: readonly string[], options?: RunOptions): Promise<string> {
    return this.machine.exec(argv, options);
  }

  /** Runs a command on the node and returns its answer, failure included. */
  tryExec(argv: readonly string[], options?: RunOptions): Promise<RunResult> {
    return this.machine.tryExec(argv, options);
  }

  /** Gives an image to the runtime: a docker-archive on the machine that the tests run on. Idempotent. */
  async importImage(path: string): Promise<void> {
    // Through standard input: the node may not see the folder.
    const command = `exec "$@" < ${path}`;
    await run(['sh', '-c', command, 'sh', ...this.machine.enter(IMPORT)], { timeoutMs: 120_000 });
  }

  /**
   * Cuts its power and switches it on again: every process, mount, Pod network, rule and route is gone, /run is empty, the
   * disk is as it was, and all NICs are there, freshly plugged in. Resolves when kubelet and kube-proxy are started.
   */
  async reboot(): Promise<void> {
    await this.powerOff();
    await this.powerOn();
  }

  /**
   * Cuts its power: nothing of it runs any more, its network and its cgroups are gone. Idempotent. Cgroups that outlived it
   * would make the next kubelet's cAdvisor wait for seconds at each container of before, and meanwhile no Pod is synced.
   */
  async powerOff(): Promise<void> {
    await this.machine.halt();
    await Promise.all([this.containerd.kill(), this.kubelet.kill(), this.kubeProxy.kill()]);
    for (const pid of cgroupPids(this.#cgroup)) killQuietly(pid);
    await removeCgroup(this.#cgroup);
  }

  /** Switches it on again after `powerOff`. */
  async powerOn(): Promise<void> {
    await this.#parts.renewNetwork();
    await this.boot();
    this.startKubelet();
  }

  /** The ends of its daemons' logs. */
  logs(): string {
    const daemons = [this.containerd, this.kubelet, this.kubeProxy];
    return daemons.map((daemon) => `== ${this.name} ${daemon.name}\n${tail(daemon.logs())}`).join('\n');
  }

  /** Ends all that runs on it; its folder stays for the caller to remove. Idempotent. */
  async close(): Promise<void> {
    await this.powerOff();
  }

  get #disk(): string {
    return join(this.#parts.dir, 'disk');
  }

  get #cgroup(): string {
    return this.#parts.netns.name;
  }

  get #facts(): KubeletFacts {
    return { ...this.#parts.facts, cgroup: this.#cgroup, clientCaFile: CLIENT_CA };
  }

  #daemon(name: string, argv: () => readonly string[]): Daemon {
    return new Daemon({ name, machine: this.machine, argv, logPath: join(this.#parts.dir, `${name}.log`) });
  }

  #writeConfiguration(): void {
    const { kubeconfigs, kubeletClientCa, podCidr } = this.#parts;
    const write = (path: string, text: string) => writeFileSync(join(this.#disk, path), text);
    // Overlays of small images cost nothing; where the disk is an overlay itself, they do not work.
    const snapshotter = isOverlay(this.#disk) ? 'native' : 'overlayfs';
    const settings = containerdConfig(PAUSE_IMAGE).replace('snapshotter = "native"', `snapshotter = "${snapshotter}"`);
    write('/etc/containerd/config.toml', `${settings}[metrics]\n  address = "${CONTAINERD_METRICS}"\n`);
    write('/etc/kubernetes/kubelet.yaml', kubeletConfig(this.#facts));
    write('/etc/kubernetes/kubelet.conf', kubeconfigs.kubelet);
    write('/etc/kubernetes/kube-proxy.conf', kubeconfigs.kubeProxy);
    write('/etc/kubernetes/resolv.conf', '');
    write(CLIENT_CA, kubeletClientCa);
    if (podCidr === undefined) return;
    write('/etc/cni/net.d/10-ptp.conflist', ptpConflist(podCidr));
    for (const plugin of ['loopback', 'ptp', 'host-local', 'portmap'])
      copyFileSync(join(REFERENCE_PLUGINS, plugin), join(this.#disk, 'opt/cni/bin', plugin));
  }
}

async function answersCri(socketPath: string): Promise<boolean> {
  const cri = openCriClient(socketPath);
  try {
    return await cri.call('Status').then(
      () => true,
      () => false,
    );
  } finally {
    cri.close();
  }
}

/** @see statfs(2), OVERLAYFS_SUPER_MAGIC */
const OVERLAYFS = 0x794c7630;

function isOverlay(path: string): boolean {
  return statfsSync(path).type === OVERLAYFS;
}

function tail(text: string): string {
  return text.slice(-4_000);
}

function ptpConflist(subnet: string): string {
  const ranges = [[{ subnet }]];
  const ipam = { type: 'host-local', dataDir: '/run/cni-networks', ranges, routes: [{ dst: '0.0.0.0/0' }] };
  const portmap = { type: 'portmap', capabilities: { portMappings: true } };
  return JSON.stringify({ cniVersion: '1.0.0', name: 'ptp', plugins: [{ type: 'ptp', ipMasq: false, ipam }, portmap] });
}
