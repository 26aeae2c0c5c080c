import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DIST_BIN_DIR } from '../../support/agent-process.ts';
import type { Child } from '../../support/child.ts';
import { type ContainerdNode, type PodSpec, startContainerdNode } from '../../support/containerd-node.ts';
import { busyboxImage, imageTar } from '../../support/image-tar.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { createTestVpc, type TestVpc } from '../../vpc/vpc.ts';

/** Start of every name that the demo gives on this machine. */
export const PREFIX = 'tke-demo-';

/** Name of the one image: Pod sandboxes sleep in it, containers run a command in it. */
const IMAGE = 'localhost/tke-demo:1';
const SLEEP = ['/bin/sleep', '2147483647'] as const;

/** Where Debian's containernetworking-plugins puts the reference plugins. */
const REFERENCE_DIR = '/usr/lib/cni';
const REFERENCE_PLUGINS = ['loopback', 'portmap', 'bandwidth'] as const;

/** Port of web-0 on its node, and in the Pod. */
export const HOST_PORT = 8080;
const CONTAINER_PORT = 80;

/** What `wget` of the host port gets. */
export const GREETING = 'hello from web-0';

/** The Pods of each node. web-0 also shows portmap and bandwidth, chained after our plugin. */
export const PODS: Readonly<Record<string, readonly PodSpec[]>> = {
  n1: [
    {
      ...pod('web-0'),
      command: ['/bin/sh', '-c', `echo ${GREETING} >/tmp/index.html; exec httpd -f -p ${CONTAINER_PORT} -h /tmp`],
      portMappings: [{ hostPort: HOST_PORT, containerPort: CONTAINER_PORT }],
      annotations: { 'kubernetes.io/ingress-bandwidth': '10M', 'kubernetes.io/egress-bandwidth': '10M' },
    },
    pod('web-1'),
  ],
  n2: [pod('db-0'), pod('db-1')],
};

/** A VPC of two nodes with their primary NIC. */
export function createDemoVpc(): Promise<TestVpc> {
  return createTestVpc({
    prefix: PREFIX,
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [
      { id: 'subnet-a', cidr: '10.0.1.0/24' },
      { id: 'subnet-b', cidr: '10.0.2.0/24' },
    ],
    nodes: Object.keys(PODS).map((name) => ({ name, primarySubnet: 'subnet-a' })),
  });
}

/** Attaches two ENIs to a node, one in each subnet, with one address each: so its two Pods are on two ENIs. */
export async function attachEnis(vpc: TestVpc, node: string): Promise<void> {
  for (const subnet of ['a', 'b']) {
    const eniId = `eni-${node}-${subnet}`;
    await vpc.attachEni(node, { eniId, subnetId: `subnet-${subnet}` });
    await vpc.assignIp(eniId);
  }
}

/** Writes the container image into a folder. @throws Error when the machine's busybox cannot run alone in a container */
export function writeImage(dir: string): string {
  const path = ['/bin/busybox', '/usr/bin/busybox'].find((candidate) => existsSync(candidate));
  if (path === undefined) throw new Error('no busybox: install the Debian package busybox-static');
  const busybox = readFileSync(path);
  if (busybox.includes('/ld-linux')) throw new Error(`${path} needs libraries: install busybox-static`);
  const image = join(dir, 'image.tar');
  writeFileSync(image, imageTar(busyboxImage(IMAGE, busybox, SLEEP)));
  return image;
}

/** Starts a node's mount namespace and containerd. */
export function startNode(vpc: TestVpc, name: string, dir: string, image: string): Promise<ContainerdNode> {
  mkdirSync(join(dir, name));
  return startContainerdNode({
    name,
    netns: vpc.node(name).netns,
    dir: join(dir, name),
    sandboxImage: IMAGE,
    images: [image],
    referencePluginDir: REFERENCE_DIR,
    referencePlugins: REFERENCE_PLUGINS,
  });
}

/**
 * Starts the packaged agent on a node with its default paths and waits until containerd has read its conflist. `onStarted` makes it the caller's
 * to stop, also when the wait fails.
 */
export async function startDemoAgent(
  vpc: TestVpc,
  node: ContainerdNode,
  onStarted: (agent: Child) => void,
): Promise<Child> {
  vpc.writeSupply(node.name, node.hostPath('/etc/tke-eni/node.yaml'));
  const agent = node.exec([
    join(DIST_BIN_DIR, 'tke-eni-agent'),
    // The node has a mount namespace of its own, and process 1 is not in it.
    '--host-root=/',
    `--plugin-dir=${DIST_BIN_DIR}`,
    '--port-mapping=true',
    '--bandwidth=true',
  ]);
  onStarted(agent);
  const conflist = node.hostPath('/etc/cni/net.d/10-tke-eni.conflist');
  await waitUntil(
    () => {
      if (!agent.isRunning) throw new Error(`${node.name}: the agent ended:\n${lastLines(agent)}`);
      return existsSync(conflist);
    },
    { what: `${node.name}: the agent's conflist`, timeoutMs: 30_000, explain: () => lastLines(agent) },
  );
  await node.awaitNetworkReady();
  return agent;
}

/** The end of a process's output. */
export function lastLines(child: Child, count = 25): string {
  return `${child.stdout}${child.stderr}`.trimEnd().split('\n').slice(-count).join('\n');
}

function pod(name: string): PodSpec {
  return { name, namespace: 'demo', image: IMAGE, command: SLEEP };
}
