import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Child } from '../../sim/support/child.ts';
import { isObject, type NetnsView } from '../../sim/support/netns.ts';
import { run } from '../../sim/support/run.ts';
import { killQuietly } from '../../sim/support/run-names.ts';
import { cgroupPids, removeCgroup } from './cgroup.ts';
import { containerdConfig } from './containerd-config.ts';
import { type CriClient, openCriClient } from './cri-client.ts';
import { makeFolders, removeIfEmpty } from './folders.ts';
import { waitUntil } from './wait-until.ts';

/** Folders that a node has for itself, under the paths that every program expects. */
const OWN_FOLDERS = [
  '/var/lib/containerd',
  '/run/containerd',
  '/run/netns',
  '/etc/cni/net.d',
  '/opt/cni/bin',
  '/var/lib/cni',
  '/run/tke-eni',
  '/etc/tke-eni',
] as const;

/** File in a node's folder that lists the mount points it had to make on the machine. */
const MADE_FOLDERS = 'made-folders';

/** What containerd and all that it execs see of our environment; it hands its whole environment to CNI plugins. */
const ENV = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root' } as const;

/** How to make a node. */
type ContainerdNodeSpec = {
  readonly name: string;
  readonly netns: NetnsView;
  /** Empty folder for this node's files; it must not be on a read-only or noexec file system. */
  readonly dir: string;
  /** Name of the image for Pod sandboxes, one of `images`. */
  readonly sandboxImage: string;
  /** docker-archive files to import. */
  readonly images: readonly string[];
  /** CNI reference plugins that the node's distribution brings. */
  readonly referencePluginDir: string;
  readonly referencePlugins: readonly string[];
};

/** A Pod to run. */
export type PodSpec = {
  readonly name: string;
  readonly namespace: string;
  /** Default: one made of the name. */
  readonly uid?: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly portMappings?: readonly { readonly hostPort: number; readonly containerPort: number }[];
};

/** A running Pod of one container. */
export type RunningPod = {
  readonly spec: PodSpec;
  readonly sandboxId: string;
  readonly containerId: string;
  readonly ip: string;
};

/** What a command in a container answered. */
type ExecAnswer = { readonly exitCode: number; readonly stdout: string; readonly stderr: string };

/**
 * Starts a node: a mount namespace with folders of its own, in the given network namespace, and containerd in both. The
 * caller closes it. Nothing is left behind when it fails.
 */
export async function startContainerdNode(spec: ContainerdNodeSpec): Promise<ContainerdNode> {
  const node = new ContainerdNode(spec);
  try {
    await node.start();
  } catch (error) {
    await node.close();
    throw error;
  }
  return node;
}

/**
 * Ends what runs in the cgroup that a crashed run's node left behind, and removes that and the mount points that it made.
 * @param name of its network namespace
 * @param dir that the node was given; stays for the caller to remove
 */
export async function removeStaleNode(name: string, dir: string): Promise<void> {
  for (const pid of cgroupPids(name)) killQuietly(pid);
  await removeCgroup(name);
  const list = join(dir, MADE_FOLDERS);
  const made = existsSync(list) ? readFileSync(list, 'utf8').split('\n').filter(Boolean) : [];
  for (const folder of made.toReversed()) removeIfEmpty(folder);
}

/** A node with a container runtime. Made by `startContainerdNode`. */
export class ContainerdNode {
  readonly name: string;
  readonly netns: NetnsView;
  #spec: ContainerdNodeSpec;
  #madeFolders: string[] = [];
  #holder: Child | undefined;
  #mountNamespace = '';
  #containerd: Child | undefined;
  #cri: CriClient | undefined;

  constructor(spec: ContainerdNodeSpec) {
    this.#spec = spec;
    this.name = spec.name;
    this.netns = spec.netns;
  }

  /** Called once, by `startContainerdNode`. */
  async start(): Promise<void> {
    await this.#makeMountNamespace();
    for (const plugin of this.#spec.referencePlugins) {
      await run(['cp', join(this.#spec.referencePluginDir, plugin), this.hostPath('/opt/cni/bin')]);
    }
    writeFileSync(join(this.#spec.dir, 'containerd.toml'), containerdConfig(this.#spec.sandboxImage));
    this.#containerd = this.exec(['containerd', '-c', join(this.#spec.dir, 'containerd.toml')]);
    this.#cri = openCriClient(this.hostPath('/run/containerd/containerd.sock'));
    await this.#awaitCondition('RuntimeReady');
    for (const image of this.#spec.images) await this.run(['ctr', '-n', 'k8s.io', 'images', 'import', image]);
  }

  /** The runtime's API. */
  get cri(): CriClient {
    if (this.#cri === undefined) throw new Error(`${this.name}: containerd is not running`);
    return this.#cri;
  }

  /** Where a path of the node lies for us: only paths below the node's own folders. */
  hostPath(path: string): string {
    const own = OWN_FOLDERS.find((folder) => path === folder || path.startsWith(`${folder}/`));
    if (own === undefined) throw new Error(`${path}: not in a folder of the node's own`);
    return join(this.#spec.dir, folderName(own), path.slice(own.length));
  }

  /** Where any path of the node lies for us while the node runs, mounts of its own included. */
  insidePath(path: string): string {
    // /var/run is a link to /run, and an absolute link below /proc/PID/root leads out to our own root.
    return `/proc/${this.#holder?.pid}/root${path.replace(/^\/var\/run\//, '/run/')}`;
  }

  /** Starts a process on the node: its mount and network namespaces, and nothing of our environment. */
  exec(argv: readonly string[]): Child {
    return new Child(this.#enter(argv), { env: ENV });
  }

  /** Runs a command on the node; it must succeed. */
  run(argv: readonly string[]): Promise<string> {
    return run(this.#enter(argv), { env: ENV });
  }

  /** Waits until the runtime has read a network configuration. */
  awaitNetworkReady(): Promise<void> {
    return this.#awaitCondition('NetworkReady');
  }

  /** Runs a Pod of one container. @throws the runtime's error, the CNI plugin's message in it */
  async runPod(pod: PodSpec): Promise<RunningPod> {
    const config = {
      metadata: { name: pod.name, uid: pod.uid ?? `uid-${pod.name}`, namespace: pod.namespace, attempt: 0 },
      hostname: pod.name,
      annotations: pod.annotations ?? {},
      portMappings: (pod.portMappings ?? []).map((mapping) => ({ protocol: 'TCP', ...mapping })),
      linux: { cgroupParent: `/${this.#cgroup}` },
    };
    const sandbox = await this.cri.call('RunPodSandbox', { config });
    const podSandboxId = String(sandbox['podSandboxId']);
    const container = await this.cri.call('CreateContainer', {
      podSandboxId,
      config: { metadata: { name: 'main', attempt: 0 }, image: { image: pod.image }, command: pod.command },
      sandboxConfig: config,
    });
    const containerId = String(container['containerId']);
    await this.cri.call('StartContainer', { containerId });
    return { spec: pod, sandboxId: podSandboxId, containerId, ip: await this.#ipOf(podSandboxId) };
  }

  /** Runs a command in a Pod's container, as `kubectl exec` does. */
  async execInPod(pod: RunningPod, command: readonly string[], timeoutS = 20): Promise<ExecAnswer> {
    const request = { containerId: pod.containerId, cmd: command, timeout: timeoutS };
    const answer = await this.cri.call('ExecSync', request);
    return {
      exitCode: Number(answer['exitCode']),
      stdout: textOf(answer['stdout']),
      stderr: textOf(answer['stderr']),
    };
  }

  /** Stops and removes a Pod sandbox and what runs in it: the runtime calls CNI DEL. Idempotent. */
  async removePod(sandboxId: string): Promise<void> {
    await this.cri.call('StopPodSandbox', { podSandboxId: sandboxId });
    await this.cri.call('RemovePodSandbox', { podSandboxId: sandboxId });
  }

  /** What containerd wrote. */
  logs(): string {
    return this.#containerd?.stderr ?? '';
  }

  /** Ends every process of the node and takes away its mounts, cgroups and folders. Idempotent, also after failures. */
  async close(): Promise<void> {
    this.#cri?.close();
    for (const pid of cgroupPids(this.#cgroup)) killQuietly(pid);
    await this.#containerd?.stop();
    // The shims outlive containerd by design; they are known by the mount namespace that nobody else has.
    for (const pid of this.#mountNamespacePids()) if (pid !== this.#holder?.pid) killQuietly(pid);
    await this.#holder?.stop('SIGKILL');
    await waitUntil(() => this.#mountNamespacePids().length === 0, { what: `${this.name}: end of its processes` });
    await removeCgroup(this.#cgroup);
    for (const folder of this.#madeFolders.toReversed()) removeIfEmpty(folder);
    this.#madeFolders = [];
  }

  get #cgroup(): string {
    return this.netns.name;
  }

  #enter(argv: readonly string[]): readonly string[] {
    const pid = this.#holder?.pid;
    if (pid === undefined) throw new Error(`${this.name}: has no mount namespace yet`);
    return ['nsenter', `--mount=/proc/${pid}/ns/mnt`, `--net=${this.netns.path}`, '--', ...argv];
  }

  async #makeMountNamespace(): Promise<void> {
    const lines = OWN_FOLDERS.map((folder) => {
      this.#madeFolders.push(...makeFolders(folder));
      const own = join(this.#spec.dir, folderName(folder));
      mkdirSync(own, { recursive: true });
      writeFileSync(join(this.#spec.dir, MADE_FOLDERS), this.#madeFolders.join('\n'));
      return `mount --bind ${own} ${folder}`;
    });
    // Shared within the node, so that containers see later mounts; private towards the machine.
    const script = ['set -e', 'mount --make-rshared /', ...lines, 'echo ready', 'exec sleep infinity'].join('\n');
    const own = new Child(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script], { env: ENV });
    this.#holder = own;
    await waitUntil(
      () => {
        if (!own.isRunning) throw new Error(`${this.name}: mount namespace: ${own.stderr}`);
        return own.stdout.includes('ready');
      },
      { what: `${this.name}: mount namespace`, explain: () => own.stderr },
    );
    this.#mountNamespace = readlinkSync(`/proc/${own.pid}/ns/mnt`);
  }

  async #awaitCondition(type: 'RuntimeReady' | 'NetworkReady'): Promise<void> {
    let last = '';
    await waitUntil(
      async () => {
        if (this.#containerd?.isRunning === false) throw new Error(`${this.name}: containerd ended: ${this.logs()}`);
        if (!existsSync(this.hostPath('/run/containerd/containerd.sock'))) return false;
        const answer = await this.cri.call('Status').catch((error: Error) => ({ error: error.message }));
        last = JSON.stringify(answer);
        const conditions = 'status' in answer && isObject(answer['status']) ? answer['status']['conditions'] : [];
        return (
          Array.isArray(conditions) &&
          conditions.some(
            (condition) => isObject(condition) && condition['type'] === type && condition['status'] === true,
          )
        );
      },
      {
        what: `${this.name}: containerd's ${type}`,
        timeoutMs: 30_000,
        everyMs: 50,
        explain: () => `${last}\n${this.logs().slice(-2_000)}`,
      },
    );
  }

  async #ipOf(podSandboxId: string): Promise<string> {
    const { status } = await this.cri.call('PodSandboxStatus', { podSandboxId });
    const network = isObject(status) ? status['network'] : undefined;
    return isObject(network) ? String(network['ip']) : '';
  }

  #mountNamespacePids(): readonly number[] {
    if (this.#mountNamespace === '') return [];
    return allPids().filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/ns/mnt`) === this.#mountNamespace;
      } catch {
        return false;
      }
    });
  }
}

/** '/etc/cni/net.d' -> 'etc-cni-net.d' */
function folderName(path: string): string {
  return path.slice(1).replaceAll('/', '-');
}

function allPids(): readonly number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number);
}

function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : '';
}
