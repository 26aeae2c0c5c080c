import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Child } from '../../../sim/support/child.ts';
import { type RunResult, run, tryRun } from '../../../sim/support/run.ts';
import type { ImageName } from '../../../tools/image/contents.ts';
import { buildImages } from '../../../tools/image.ts';
import { createPodNetns } from '../../support/pod-netns.ts';
import type { TempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';

/** Our images, built and unpacked, and containers of them without a cluster. */
export type OpenImages = {
  /** @throws Error when the image was not opened */
  image(name: ImageName): UnpackedImage;
  /** Runs a command in a container of its own, to its end. */
  inImage(name: ImageName, args: readonly string[], env?: readonly string[]): Promise<RunResult>;
  /** Starts a container, and ends it with the scope that it is used in. `writable` are folders with a tmpfs each. */
  start(name: ImageName, args: readonly string[], env?: readonly string[], writable?: readonly string[]): RunningImage;
  /** Starts an agent on the node of `conf/node.example.yaml`, without a container runtime; resolves once it serves. */
  startAgent(): Promise<RunningImage>;
};

type UnpackedImage = {
  readonly root: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** What tar lists of all layers. */
  readonly listing: string;
};

type RunningImage = {
  readonly child: Child;
  /** Process id on this machine, 0 until it runs. */
  pidOf(): Promise<number>;
  exec(...args: readonly string[]): Promise<RunResult>;
  /** The command line before the words of an `exec`, as `kubectl exec POD --` would be. */
  readonly execArgv: readonly string[];
  [Symbol.asyncDispose](): Promise<void>;
};

/** Builds images and unpacks them below a folder. Containers run by runc: root read-only, the image's user, no network. */
export async function openImages(dir: TempDir, names?: readonly ImageName[]): Promise<OpenImages> {
  const images = new Map<ImageName, UnpackedImage>();
  for (const { name, path } of await buildImages(names === undefined ? {} : { names })) {
    images.set(name, await unpack(dir, name, path));
  }
  const image: OpenImages['image'] = (name) => {
    const found = images.get(name);
    if (found === undefined) throw new Error(`${name}: not built`);
    return found;
  };
  let count = 0;
  const nextId = (): string => {
    count += 1;
    return `c${count}`;
  };
  const bundle = (id: string, name: ImageName, [args, env = [], writable = []]: ProcessWords, netns?: string) =>
    makeBundle(dir, id, image(name), { args, env, writable, netns });
  return {
    image,
    inImage: (name, ...process) => tryRun(bundle(nextId(), name, process), { timeoutMs: 60_000 }),
    start: (name, ...process) => {
      const id = nextId();
      return startContainer(dir, id, bundle(id, name, process));
    },
    startAgent: async () => {
      const id = nextId();
      const netns = await createNodeNetns(containerOf(id));
      const process = [AGENT, [], AGENT_FOLDERS] as const;
      const started = startContainer(dir, id, bundle(id, 'tke-eni-agent', process, netns.path), () => netns.close());
      const { child } = started;
      const output = () => child.stdout + child.stderr;
      await waitUntil(
        () => {
          if (!child.isRunning) throw new Error(`ended: ${output()}`);
          return ['"msg":"serving"', '"msg":"executables installed"'].every((text) => output().includes(text));
        },
        { what: 'serving', timeoutMs: 60_000, everyMs: 100, explain: output },
      );
      return started;
    },
  };
}

/** Where every container finds files of the test. */
export const SECRETS = '/run/secrets/kubernetes.io/serviceaccount';

const AGENT = [
  ...['/usr/bin/tke-eni-agent', '--cri-socket=', '--host-root=/', `--supply-file=${SECRETS}/node.yaml`],
  ...['--supply-source=file', '--plugin-dir=/opt/tke-eni/bin'],
];
const AGENT_FOLDERS = ['/run/tke-eni', '/opt/cni/bin', '/etc/cni/net.d'];

type ProcessWords = readonly [
  args: readonly string[],
  env?: readonly string[] | undefined,
  writable?: readonly string[] | undefined,
];
type ProcessSpec = {
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly writable: readonly string[];
  /** Network namespace of the host that it runs in; undefined: one of its own with a loopback interface. */
  readonly netns: string | undefined;
};

/** Makes a network with the interfaces of `conf/node.example.yaml`. */
async function createNodeNetns(name: string) {
  const netns = await createPodNetns(name);
  const links = [
    ['eth0', '20:90:6f:0a:00:00'],
    ['eth1', '20:90:6f:0a:00:01'],
    ['eth2', '20:90:6f:0a:00:02'],
  ];
  for (const [link = '', mac = ''] of links) {
    const peer = `far-${link}`;
    await netns.ip('link', 'add', link, 'address', mac, 'type', 'veth', 'peer', 'name', peer);
    await netns.ip('link', 'set', peer, 'up');
  }
  await netns.ip('addr', 'add', '10.0.0.10/24', 'dev', 'eth0');
  await netns.ip('link', 'set', 'eth0', 'up');
  await netns.ip('route', 'add', 'default', 'via', '10.0.0.1');
  return netns;
}

/** Unpacks an image with the system's tar, layer by layer, as a runtime does. */
async function unpack(dir: TempDir, name: ImageName, path: string): Promise<UnpackedImage> {
  const [archive, root] = [dir.join(`${name}.d`), dir.join(name)];
  for (const folder of [archive, root]) mkdirSync(folder);
  await run(['tar', '-x', '-f', path, '-C', archive], { timeoutMs: 60_000 });
  const [manifest] = JSON.parse(readFileSync(`${archive}/manifest.json`, 'utf8'));
  let listing = '';
  for (const layer of manifest.Layers) {
    listing += await run(['tar', '-t', '-v', '--numeric-owner', '-f', `${archive}/${layer}`]);
    await run(['tar', '-x', '-p', '-f', `${archive}/${layer}`, '-C', root], { timeoutMs: 60_000 });
  }
  const { config } = JSON.parse(readFileSync(`${archive}/${manifest.Config}`, 'utf8'));
  await run(['rm', '-r', archive]);
  return { root, config, listing };
}

const CAPABILITIES = ['CAP_NET_ADMIN', 'CAP_SYS_ADMIN', 'CAP_SYS_PTRACE'];

const KUBECONFIG = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:9"}}]
users: [{name: u, user: {token: x}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;

/** Writes a bundle for runc: nothing is mounted but what every runtime mounts. Returns the command that runs it. */
function makeBundle(
  dir: TempDir,
  id: string,
  { root, config }: UnpackedImage,
  { args, env, writable, netns }: ProcessSpec,
): readonly string[] {
  const [uid, gid] = String(config['User']).split(':').map(Number);
  const capabilities = uid === 0 ? CAPABILITIES : [];
  const spec = {
    ociVersion: '1.0.2',
    process: {
      user: { uid, gid },
      args,
      env: [...(config['Env'] as readonly string[]), ...env],
      cwd: '/',
      noNewPrivileges: true,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    },
    root: { path: root, readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: SECRETS, type: 'bind', source: dir.join(id, 'secrets'), options: ['bind', 'ro'] },
      ...writable.map((destination) => ({ destination, type: 'tmpfs', source: 'tmpfs' })),
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755'] },
      {
        destination: '/dev/pts',
        type: 'devpts',
        source: 'devpts',
        options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'],
      },
      { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: ['nosuid', 'nodev', 'mode=1777'] },
    ],
    linux: {
      namespaces: [
        ...['pid', 'mount', 'ipc', 'uts'].map((type) => ({ type })),
        { type: 'network', ...(netns === undefined ? {} : { path: netns }) },
      ],
    },
  };
  mkdirSync(dir.join(id, 'secrets'), { recursive: true });
  writeFileSync(dir.join(id, 'secrets', 'kubeconfig'), KUBECONFIG);
  copyFileSync('conf/node.example.yaml', dir.join(id, 'secrets', 'node.yaml'));
  writeFileSync(dir.join(id, 'config.json'), JSON.stringify(spec));
  return [...runcOf(dir), 'run', '--bundle', dir.join(id), containerOf(id)];
}

function startContainer(
  dir: TempDir,
  id: string,
  command: readonly string[],
  onEnd: () => Promise<void> = async () => {},
): RunningImage {
  const container = containerOf(id);
  const child = new Child(command);
  const runc = (...words: readonly string[]) => tryRun([...runcOf(dir), ...words]);
  return {
    child,
    pidOf: async () => {
      const state = await runc('state', container);
      return state.code === 0 ? Number(JSON.parse(state.stdout).pid) : 0;
    },
    exec: (...args) => runc('exec', container, ...args),
    execArgv: [...runcOf(dir), 'exec', container],
    [Symbol.asyncDispose]: async () => {
      await runc('kill', container, 'KILL');
      await child.stop();
      await runc('delete', '--force', container);
      await onEnd();
    },
  };
}

const runcOf = (dir: TempDir): readonly string[] => ['runc', '--root', dir.join('runc')];
const containerOf = (id: string): string => `tke-test-${process.pid}-${id}`;
