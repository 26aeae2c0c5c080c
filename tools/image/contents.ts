import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LAUNCHER } from '../../cni-plugins/launcher/names.ts';
import type { TarEntry } from '../../runtime/tar.ts';
import type { Layer } from './archive.ts';
import { findLibraries } from './libraries.ts';
import { orderLayers } from './tree.ts';

/** Is the name of an image. */
export type ImageName = 'tke-eni-agent' | CloudClientName | ServerName;

/** Programs that call the cloud, and need the authorities of its certificates. */
type CloudClientName = 'tke-eni-ipamd' | 'tke-cloud-controller-manager';

/** Programs that answer questions by HTTPS, and need nothing but their certificate. */
type ServerName = 'tke-eni-ip-scheduler' | 'tke-eni-ip-webhook';

/** Where the files of the images come from. */
type Sources = {
  /** Folder with our executables. */
  readonly binDir: string;
  /** Root of the Debian system that the rest is taken from; default '/'. */
  readonly root?: string;
};

/** What an image is, but for its version. */
type Contents = {
  readonly title: string;
  readonly entrypoint: readonly string[];
  readonly env: readonly string[];
  readonly user: string;
  readonly layers: readonly Layer[];
};

/** User and group of programs that need no rights. */
const NONROOT = '65532:65532';

/**
 * Lists all that is in an image: our executables, and by name what they need of a Debian system, with the libraries that
 * these need. Nothing else gets in. The layers that change least come first, so that an upgrade moves little.
 * @throws one error that names all that is not there.
 */
export function contentsOf(name: ImageName, { binDir, root = '/' }: Sources): Contents {
  const contents = contentsFor(name, binDir, root);
  const layers = orderLayers(contents.layers);
  const missing = layers.flatMap(({ entries }) => entries.flatMap((entry) => missingOf(entry)));
  if (missing.length > 0) throw new Error(`${name}: not there:\n${missing.join('\n')}`);
  return { ...contents, layers };
}

function contentsFor(name: ImageName, binDir: string, root: string): Contents {
  if (name === 'tke-eni-agent') return agentContents(binDir, root);
  if (name === 'tke-eni-ipamd' || name === 'tke-cloud-controller-manager') return clientContents(name, binDir, root);
  return serverContents(name, binDir, root);
}

function agentContents(binDir: string, root: string): Contents {
  const program = join(binDir, 'tke-eni-agent');
  const tools = TOOLS.map((path) => join(root, path));
  const plugins = REFERENCE_PLUGINS.map((plugin) => join(root, 'usr/lib/cni', plugin));
  const addon = join(binDir, 'ffi-rs.node');
  const [plugin, ...otherNames] = PLUGINS;
  return {
    title: 'tke-eni-agent',
    entrypoint: ['/usr/bin/tke-eni-agent'],
    env: [PATH],
    // It makes interfaces, routes and namespaces of the node.
    user: '0:0',
    layers: [
      baseLayer(program, root),
      {
        name: 'tools',
        entries: [
          ...AGENT_MOUNT_POINTS.map((path): TarEntry => ({ kind: 'folder', path })),
          ...tools.map((source, index) => executable(TOOLS[index] ?? '', source)),
          { kind: 'symlink', path: 'usr/bin/sh', target: 'dash' },
          ...plugins.map((source, index) => executable(`usr/lib/cni/${REFERENCE_PLUGINS[index]}`, source)),
          { kind: 'copy', path: 'etc/protocols', source: join(root, 'etc/protocols') },
          ...libraries([...tools, ...plugins, addon], root),
        ],
      },
      {
        name: 'plugins',
        entries: [
          executable(`${PLUGIN_DIR}/${plugin}`, join(binDir, plugin)),
          ...otherNames.map(
            (other): TarEntry => ({
              kind: 'link',
              path: `${PLUGIN_DIR}/${other}`,
              target: `${PLUGIN_DIR}/${plugin}`,
              mode: 0o755,
            }),
          ),
          // A machine without a C compiler makes none.
          ...(existsSync(join(binDir, LAUNCHER))
            ? [executable(`${PLUGIN_DIR}/${LAUNCHER}`, join(binDir, LAUNCHER))]
            : []),
          // For the node, where they run: it may lack them.
          ...PLUGIN_LIBRARIES.map(
            (path): TarEntry => ({ kind: 'copy', path: `${PLUGIN_DIR}/${path}`, source: join(binDir, path) }),
          ),
        ],
      },
      // For people: `kubectl exec ds/tke-eni-agent -- tke-eni …`. Its ffi-rs.node is the program's.
      { name: 'cli', entries: [executable('usr/bin/tke-eni', join(binDir, 'tke-eni'))] },
      {
        name: 'program',
        entries: [
          executable('usr/bin/tke-eni-agent', program),
          // Beside the executable, where it is loaded from: nothing is unpacked at start.
          { kind: 'copy', path: 'usr/bin/ffi-rs.node', source: addon },
        ],
      },
    ],
  };
}

function clientContents(name: CloudClientName, binDir: string, root: string): Contents {
  const program = join(binDir, name);
  return {
    title: name,
    entrypoint: [`/usr/bin/${name}`],
    // Node carries Mozilla's list and asks no file on its own; so a file mounted here is heard too.
    env: [PATH, `NODE_EXTRA_CA_CERTS=/${CERTIFICATES}`],
    user: NONROOT,
    layers: [
      baseLayer(program, root),
      {
        name: 'certificates',
        entries: [{ kind: 'copy', path: CERTIFICATES, source: realPath(join(root, CERTIFICATES)) }],
      },
      { name: 'program', entries: [executable(`usr/bin/${name}`, program)] },
    ],
  };
}

function serverContents(name: ServerName, binDir: string, root: string): Contents {
  const program = join(binDir, name);
  return {
    title: name,
    entrypoint: [`/usr/bin/${name}`],
    env: [PATH],
    user: NONROOT,
    layers: [
      baseLayer(program, root),
      {
        name: 'program',
        entries: [
          // Its certificate is mounted there.
          { kind: 'folder', path: `etc/${name}/tls` },
          executable(`usr/bin/${name}`, program),
        ],
      },
    ],
  };
}

/** Is the same in all images, so that a node has it once. */
function baseLayer(program: string, root: string): Layer {
  return {
    name: 'base',
    entries: [
      ...['bin', 'lib', 'lib64', 'sbin'].map((path): TarEntry => ({ kind: 'symlink', path, target: `usr/${path}` })),
      ...['usr/bin', 'usr/lib', 'usr/lib64', 'usr/sbin', 'root'].map((path): TarEntry => ({ kind: 'folder', path })),
      ...MOUNT_POINTS.map((path): TarEntry => ({ kind: 'folder', path })),
      { kind: 'folder', path: 'tmp', mode: 0o1777 },
      { kind: 'symlink', path: 'var/run', target: '../run' },
      { kind: 'file', path: 'etc/passwd', content: Buffer.from(PASSWD) },
      { kind: 'file', path: 'etc/group', content: Buffer.from(GROUP) },
      { kind: 'file', path: 'etc/nsswitch.conf', content: Buffer.from(NSSWITCH) },
      ...libraries([program], root),
    ],
  };
}

const PATH = 'PATH=/usr/sbin:/usr/bin';

const PASSWD = `root:x:0:0:root:/root:/usr/sbin/nologin
nonroot:x:65532:65532:nonroot:/:/usr/sbin/nologin
`;
const GROUP = `root:x:0:
nonroot:x:65532:
`;
/** Only what glibc itself carries: no library is opened for it. */
const NSSWITCH = `passwd: files
group: files
hosts: files dns
protocols: files
services: files
`;

/** Empty folders on which the runtime mounts: it can make none in a read-only root. */
const MOUNT_POINTS = ['dev', 'proc', 'run/secrets/kubernetes.io/serviceaccount', 'sys', 'var'];
const AGENT_MOUNT_POINTS = [
  'etc/cni/net.d',
  'etc/tke-eni',
  'opt/cni/bin',
  'run/containerd',
  'run/crio',
  'run/netns',
  'run/tke-eni',
  'var/lib/kubelet/device-plugins',
  'var/lib/kubelet/pod-resources',
];

/**
 * Programs of the node's system that the agent runs. `unshare` and `dash`: it has nft list a ruleset in a network
 * namespace that lives for this alone.
 */
const TOOLS = ['usr/sbin/conntrack', 'usr/sbin/nft', 'usr/bin/unshare', 'usr/bin/dash'];

/** What our network configurations chain or delegate to, and what every container runtime needs besides. */
const REFERENCE_PLUGINS = ['bandwidth', 'bridge', 'host-local', 'loopback', 'portmap'];

const PLUGIN_DIR = 'opt/tke-eni/bin';
/** One file and its other names. */
const PLUGINS = ['tke-route-eni', 'tke-direct-eni', 'tke-eni-ipamc'] as const;
const PLUGIN_LIBRARIES = ['tke-eni-lib/libatomic.so.1'];

/** Where OpenSSL's users look. */
const CERTIFICATES = 'etc/ssl/certs/ca-certificates.crt';

function executable(path: string, source: string): TarEntry {
  return { kind: 'copy', path, source: realPath(source), mode: 0o755 };
}

function libraries(programs: readonly string[], root: string): readonly TarEntry[] {
  const present = programs.filter((path) => existsSync(path));
  return findLibraries(present, root).map(({ path, source, isLoader }) => {
    const entry = { kind: 'copy', path: path.slice(1), source } as const;
    return isLoader ? { ...entry, mode: 0o755 } : entry;
  });
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

function missingOf(entry: TarEntry): readonly string[] {
  if (entry.kind !== 'copy' || existsSync(entry.source)) return [];
  const hint = PACKAGES.find(([pattern]) => pattern.test(entry.path))?.[1] ?? `look into ${dirname(entry.source)}`;
  return [`${entry.source} (${hint})`];
}

/** Who brings a file that is missing. */
const PACKAGES: readonly (readonly [RegExp, string])[] = [
  [/tke-|ffi-rs/, 'make build'],
  [/conntrack$/, 'Debian package conntrack'],
  [/nft$/, 'Debian package nftables'],
  [/lib\/cni\//, 'Debian package containernetworking-plugins'],
  [/ca-certificates/, 'Debian package ca-certificates'],
  [/protocols$/, 'Debian package netbase'],
];
