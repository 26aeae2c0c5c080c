import { systemClock } from '../../runtime/clock.ts';
import { NetnsView } from '../../sim/support/netns.ts';
import { run } from '../../sim/support/run.ts';
import type { IssuedKey } from '../../sim/vpc/api/credential-book.ts';
import { CloudHost } from '../../sim/vpc/api/host.ts';
import { CloudServer } from '../../sim/vpc/api/http-server.ts';
import { createVpcFabric } from '../../sim/vpc/api/vpc-fabric.ts';
import { createTestVpc, type TestVpc } from '../../sim/vpc/vpc.ts';

/** The zone that everything is in unless told otherwise. */
export const ZONE = 'ap-guangzhou-3';
/** The subnet of the nodes' primary NICs. */
const NODE_SUBNET = 'subnet-nodes000';

/** A subnet for Pods. */
export type PodSubnet = { readonly subnetId: string; readonly cidr: string; readonly zone?: string };

/** The subnet for Pods where a system names none. */
export const POD_SUBNET: PodSubnet = { subnetId: 'subnet-pods000a', cidr: '10.0.1.0/24' };

/** What the cloud of a system consists of. */
type VpcCloudSpec = {
  readonly nodes: readonly { readonly name: string; readonly cores: number; readonly zone?: string }[];
  readonly subnets: readonly PodSubnet[];
  /** Start of every name on this machine; default 'tke-test-'. */
  readonly prefix?: string;
  /** ENIs in the VPC, primary ones not counted; default 1000. */
  readonly vpcEnis?: number;
  /** How long tasks last, milliseconds; default 20 to 80. */
  readonly taskMs?: readonly [number, number];
};

/** The cloud: its API, served in this process, and its packets, in network namespaces. */
export type VpcCloud = {
  readonly vpc: TestVpc;
  readonly host: CloudHost;
  readonly server: CloudServer;
  readonly vpcId: string;
  readonly key: IssuedKey;
  /** Subnets for Pods. */
  readonly podSubnetIds: readonly string[];
  /** The instance that a node is. */
  instanceOf(nodeName: string): string;
  /** Makes a network namespace with nothing but a loopback; it goes with the VPC. */
  createRoom(name: string): Promise<NetnsView>;
  /** @throws Error when the packets' side broke: what the tests saw since then says nothing */
  close(): Promise<void>;
};

const NODE_CIDR = '10.0.0.0/24';
/** Of nodes in another zone than ZONE: zone by zone. */
const FAR_CIDRS = ['10.0.250.0/24', '10.0.251.0/24', '10.0.252.0/24'];
const VPC_ID = 'vpc-system00';

/** Brings up the cloud with an instance for each node. The caller closes it. */
export async function createVpcCloud(spec: VpcCloudSpec): Promise<VpcCloud> {
  const far = [...new Set(spec.nodes.flatMap(({ zone = ZONE }) => (zone === ZONE ? [] : [zone])))];
  const nodeSubnets = [
    { subnetId: NODE_SUBNET, cidr: NODE_CIDR, zone: ZONE },
    ...far.map((zone, index) => ({ subnetId: `subnet-nodes00${index + 1}`, cidr: FAR_CIDRS[index] ?? '', zone })),
  ];
  const nodeSubnetOf = (zone = ZONE): string =>
    nodeSubnets.find((subnet) => subnet.zone === zone)?.subnetId ?? NODE_SUBNET;
  const vpc = await createTestVpc({
    ...(spec.prefix === undefined ? {} : { prefix: spec.prefix }),
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [...[...nodeSubnets, ...spec.subnets].map(({ subnetId, cidr }) => ({ id: subnetId, cidr }))],
    nodes: spec.nodes.map(({ name, zone }) => ({ name, primarySubnet: nodeSubnetOf(zone) })),
  });
  const names = new Map(spec.nodes.map(({ name }) => [instanceIdOf(name), name]));
  const nodeOf = (instanceId: string): string => names.get(instanceId) ?? instanceId;
  const subnets: readonly PodSubnet[] = [...nodeSubnets, ...spec.subnets];
  const host = new CloudHost(
    {
      vpcId: VPC_ID,
      subnets: subnets.map((subnet) => ({ zone: ZONE, ...subnet })),
      ...(spec.vpcEnis === undefined ? {} : { vpcEnis: spec.vpcEnis }),
    },
    systemClock,
    { taskMs: spec.taskMs ?? [20, 80], fabric: createVpcFabric(vpc, nodeOf) },
  );
  for (const { name, cores, zone } of spec.nodes) {
    const { mac, primaryIp } = vpc.node(name).primary;
    const primary = { mac, ip: primaryIp };
    host.model.state.addInstance({ instanceId: instanceIdOf(name), cores, subnetId: nodeSubnetOf(zone), primary });
  }
  const server = new CloudServer(host);
  const key = server.credentials.add('AKIDsystem', 'secret-0');
  return {
    vpc,
    host,
    server,
    vpcId: VPC_ID,
    key,
    podSubnetIds: spec.subnets.map(({ subnetId }) => subnetId),
    instanceOf: instanceIdOf,
    createRoom: async (name) => {
      const room = new NetnsView(`${vpc.prefix}${name}`);
      await run(['ip', 'netns', 'add', room.name]);
      await room.ip('link', 'set', 'lo', 'up');
      return room;
    },
    close: async () => {
      await vpc.close();
      if (host.brokenBy !== undefined)
        throw new Error(`the test cloud broke: ${String(host.brokenBy)}`, { cause: host.brokenBy });
    },
  };
}

function instanceIdOf(nodeName: string): string {
  return `ins-${nodeName.padEnd(8, '0')}`;
}
