import { NODE_ANNOTATION } from '../../../crd/names.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import type { Machine } from '../machine.ts';
import type { Stage } from '../stage.ts';
import type { Story } from '../story.ts';

/**
 * The simplest story: a node gets more Pods than it has spare addresses, so ipamd assigns some, and most of them end, so the
 * agent offers addresses and ipamd takes them back. What must hold is not here: auditors look at every step and at the end.
 */
export const warmAndBack: Story = {
  title: 'addresses come with Pods and go back when the Pods end',
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    await stage.pods(node, 7);
    await stage.end(node, 6);
  },
};

/** More Pods than one ENI has addresses: ENIs are created and attached, and detached and deleted when they are empty. */
export const eniGrowth: Story = {
  title: 'ENIs come with Pods and go when they are empty',
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    await stage.pods(node, 14);
    stage.expect('the Pods need two ENIs or more', (stage.nec(node).status.eniInfos?.length ?? 0) >= 2);
    await stage.end(node, 14);
    await stage.until('one ENI is left', () => stage.nec(node).status.eniInfos?.length === 1, 3_600_000);
  },
};

/** A subnet with as few addresses as that two nodes want more than there are. */
export const fullSubnet: Story = {
  title: 'Pods that wait for a full subnet get the addresses that others give back',
  world: {
    cloud: {
      vpcId: 'vpc-0000test',
      subnets: [
        { subnetId: 'subnet-podsa000', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/27' },
        { subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
      ],
    },
  },
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node()];
    stage.begin();
    await stage.pods(first, 11);
    const late = await stage.make(second, 6);
    await stage.minutes(3);
    const { conditions = [] } = stage.nec(second).status;
    stage.expect(
      'the node says why',
      conditions.some(({ reason }) => reason === 'SubnetExhausted'),
    );
    await stage.end(first, 8);
    await stage.until('all have addresses', () => late.every((name) => stage.ipOf(name) !== undefined), 3_600_000);
    await stage.end(second, 4);
  },
};

/** Begins with three Pods on a node, and three free addresses in the subnet. */
async function beginScarce(stage: Stage): Promise<Machine> {
  const node = await stage.node();
  const { pool } = stage.world.host.model.state.subnet('subnet-podsa000');
  while (pool.free > 3) pool.take();
  await stage.pods(node, 3);
  stage.begin();
  return node;
}

/** Waits until ipamd has asked the cloud to take an address back. */
async function untilReturning(stage: Stage): Promise<void> {
  await stage.until('an address is on its way back', () => stage.sent('UnassignPrivateIpAddresses') > 0, 600_000);
}

/** Makes as many Pods as there are addresses, and waits until all have one. */
async function demandAll(stage: Stage, node: Machine, minutes: number): Promise<void> {
  const late = await stage.make(node, 8);
  await stage.minutes(minutes);
  await stage.until('all have addresses', () => late.every((name) => stage.ipOf(name) !== undefined));
}

/** A request to take an address back is still under way when its connection breaks; every free address is in demand. */
export const lateRequest: Story = {
  title: 'a request that arrives late takes no address from a Pod',
  world: {
    cloud: {
      vpcId: 'vpc-0000test',
      subnets: [
        { subnetId: 'subnet-podsa000', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/28' },
        { subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
      ],
    },
  },
  tell: async (stage) => {
    const node = await beginScarce(stage);
    stage.stray('UnassignPrivateIpAddresses', 55);
    await stage.end(node, 3);
    await untilReturning(stage);
    await demandAll(stage, node, 3);
  },
};

/** The same request is still under way when its leader dies, and the next one finds it on record. */
export const inheritedRequest: Story = {
  ...lateRequest,
  title: 'a request of a leader that is dead takes no address from a Pod',
  tell: async (stage) => {
    const node = await beginScarce(stage);
    stage.stray('UnassignPrivateIpAddresses', 80);
    await stage.end(node, 3);
    await untilReturning(stage);
    stage.killLeader();
    await demandAll(stage, node, 2);
  },
};

/** The same request is still under way when the API server is restored, and no object says so any more. */
export const forgottenRequest: Story = {
  ...lateRequest,
  title: 'a request that a restored API server forgot takes no address from a Pod',
  tell: async (stage) => {
    const node = await beginScarce(stage);
    stage.stray('UnassignPrivateIpAddresses', 45);
    await stage.end(node, 3);
    const backup = stage.backup();
    await untilReturning(stage);
    // Its leader hears nothing of it until it has given the request up.
    const deaf = stage.partition('ipamd-*');
    stage.restore(backup);
    await stage.seconds(12);
    deaf();
    await demandAll(stage, node, 3);
  },
};

/** The same request is answered, and no object says so; descriptions are of before. */
export const forgottenAnswer: Story = {
  ...lateRequest,
  title: 'an address that was given back is not found again by an old description',
  tell: async (stage) => {
    const node = await beginScarce(stage);
    await stage.end(node, 3);
    const backup = stage.backup();
    await untilReturning(stage);
    const deaf = stage.partition('ipamd-*');
    stage.restore(backup);
    await stage.seconds(8);
    const heal = stage.cloudFault({ fault: { kind: 'stale', ms: 12_000 }, actions: ['DescribeNetworkInterfaces'] });
    deaf();
    const late = await stage.make(node, 8);
    await stage.seconds(20);
    heal();
    await stage.until('all have addresses', () => late.every((name) => stage.ipOf(name) !== undefined));
  },
};

/** The same request is under way when the object of its node is deleted by force, and made again. */
export const requestOfLost: Story = {
  ...lateRequest,
  title: 'a request for an object that is gone takes no address from a Pod',
  tell: async (stage) => {
    const node = await beginScarce(stage);
    stage.stray('UnassignPrivateIpAddresses', 45);
    await stage.end(node, 3);
    await untilReturning(stage);
    await stage.seconds(12);
    await stage.patchNec(node, { metadata: { finalizers: null } });
    await stage.people(stage.world.admin.delete(NODE_ENI_CONFIGS, { name: node.name }));
    await stage.patchNec(node, { metadata: { finalizers: null } }).catch(() => undefined);
    await demandAll(stage, node, 3);
  },
};

/** A task that takes longer than any leader waits for it at a time. */
export const slowTask: Story = {
  title: 'a task of eight minutes is followed once, and has its result',
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    stage.cloudFault({ fault: { kind: 'slow-task', ms: 500_000 }, actions: ['AssignPrivateIpAddresses'], times: 1 });
    const names = await stage.make(node, 7);
    const reason = () => stage.nec(node).status.conditions?.find(({ type }) => type === 'Ready')?.reason;
    await stage.until('the node says what it waits for', () => reason() === 'CallUnderWay');
    await stage.seconds(90);
    const before = stage.sent('DescribeVpcTaskResult');
    await stage.minutes(4);
    stage.expect('it is asked for now and then', stage.sent('DescribeVpcTaskResult') - before <= 10);
    await stage.untilServed(...names);
  },
};

/** Somebody takes an address off an ENI in the console; later a description is of minutes ago. */
export const drift: Story = {
  title: 'what somebody takes away in the cloud is gone from the object, and what is in use stays',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 3);
    stage.begin();
    const used = node.agent.addresses;
    const [ip = ''] = stage.supply(node).filter((one) => !used.includes(one));
    stage.expect('the cloud has it', stage.takeInCloud(ip));
    await stage.until('it serves no more', () => !stage.supply(node).includes(ip), 3_600_000);
    await stage.minutes(1);
    await stage.pods(node, 6);
    await stage.until('all is supplied', () => stage.isReady(node));
    const fault = { kind: 'stale', ms: 120_000 } as const;
    stage.cloudFault({ fault, actions: ['DescribeNetworkInterfaces'], times: 2 });
    await stage.minutes(20);
    await stage.end(node, 5);
  },
};

/**
 * A request for an ENI is done, and its answer never comes; its leader dies, and before the next one looks the cloud has forgotten
 * the token of the request.
 */
export const forgottenToken: Story = {
  title: 'a record makes one ENI, also when the cloud forgets its requests',
  tell: async (stage) => {
    stage.cloudFault({ fault: { kind: 'hang', after: true }, actions: ['CreateNetworkInterface'], times: 1 });
    const node = await stage.join();
    await stage.until('the ENI is made', () => [...stage.world.host.model.state.enis.values()].length > 1);
    stage.begin();
    stage.killAll();
    stage.world.host.model.forgetTokens();
    await stage.until('the node is ready', () => stage.isReady(node));
    await stage.pods(node, 2);
  },
};

/** While nothing is under way a description is of two minutes ago: what Pods got meanwhile is not in it. */
export const staleLook: Story = {
  title: 'one description of the past takes no address from a Pod',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.minutes(5);
    await stage.pods(node, 7);
    await stage.until('all is supplied', () => stage.isReady(node));
    stage.begin();
    const fault = { kind: 'stale', ms: 120_000 } as const;
    const heal = stage.cloudFault({ fault, actions: ['DescribeNetworkInterfaces'] });
    // What people write there makes ipamd look at once.
    await stage.patchNec(node, { status: { eniInfos: [] } }, 'status');
    await stage.seconds(40);
    heal();
    await stage.minutes(3);
    stage.expect('the node has what it had', stage.isReady(node));
  },
};

/** A node gets other security groups while it has two ENIs. */
export const otherGroups: Story = {
  title: 'security groups of a node are those of all its ENIs',
  world: { flags: ['--enable-security-groups=true', '--security-groups=sg-aaaaaaaa'] },
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 8);
    stage.begin();
    const groups = () => stage.enis(node).map(({ securityGroupIds }) => securityGroupIds.join());
    await stage.patchNec(node, { spec: { securityGroups: ['sg-bbbbbbbb', 'sg-aaaaaaaa'] } });
    await stage.until('all have them', () => groups().every((ids) => ids === 'sg-bbbbbbbb,sg-aaaaaaaa'), 900_000);
  },
};

/** A node asks for no security groups for a while. */
export const clearedGroups: Story = {
  title: 'security groups that are taken away come back',
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    const groups = () => stage.enis(node).map(({ securityGroupIds }) => securityGroupIds.join());
    const before = groups();
    for (const [isCleared, wanted] of [
      ['yes', ['']],
      [null, before],
    ] as const) {
      await stage.patchNode(node, {
        metadata: { annotations: { [NODE_ANNOTATION.disableSecurityGroups]: isCleared } },
      });
      await stage.until('its ENI has them', () => groups().join() === wanted.join(), 900_000);
    }
  },
};

/** A node leaves, and its Pods with it. */
export const nodeLeaves: Story = {
  title: 'what a node had is given back when it is gone',
  tell: async (stage) => {
    const [stays, leaves] = [await stage.node(), await stage.node()];
    await stage.pods(stays, 2);
    await stage.pods(leaves, 7);
    stage.begin();
    await stage.leave(leaves);
    await stage.until('its object is gone', () => stage.nec(leaves).status.eniInfos === undefined, 3_600_000);
    stage.expect('none of its ENIs is left', stage.enis(leaves).length === 0);
  },
};

/** A node leaves in the moment in which its ENI is attached: the cloud has done that, and its instance is gone. */
export const leavesWhileAttaching: Story = {
  title: 'nothing is left of a node that leaves while its ENI is attached',
  tell: async (stage) => {
    await stage.node();
    stage.begin();
    const sent = stage.sent('AttachNetworkInterface');
    const second = await stage.join();
    await stage.until('its ENI is attached', () => stage.sent('AttachNetworkInterface') > sent);
    await stage.leave(second);
    await stage.until('its object is gone', () => stage.world.objects('nodeeniconfigs').length === 1, 1_200_000);
  },
};

/**
 * A request for addresses is done and not answered. Before it is sent again with its token, somebody takes the addresses off
 * their ENI: the cloud answers with the success of before.
 */
const repeated = (title: string, between: (stage: Stage) => void): Story => ({
  title,
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 2);
    await stage.until('all is supplied', () => stage.isReady(node));
    stage.begin();
    const [eni] = stage.enis(node);
    const before = new Set(eni?.ips.keys());
    const action = 'AssignPrivateIpAddresses';
    stage.cloudFault({ fault: { kind: 'hang', after: true }, actions: [action], times: 1 });
    const sent = stage.sent(action);
    await stage.make(node, 4);
    await stage.until('it is sent', () => stage.sent(action) > sent);
    await stage.seconds(5);
    await stage.people(stage.world.host.catchUp());
    for (const ip of eni?.ips.keys() ?? []) if (!before.has(ip)) stage.takeInCloud(ip);
    between(stage);
    await stage.until('it is sent again', () => stage.sent(action) > sent + 1);
    await stage.pods(node, 4);
    await stage.until('all is supplied', () => stage.isReady(node));
  },
});

/** It is sent again by the same leader, within the same call. */
export const repeatedAnswer = repeated(
  'an address that was taken away before its request was answered again serves nobody',
  () => {},
);

/** It is sent again by the next leader, which finds it on record. */
export const inheritedAnswer = repeated(
  'an address that was taken away before its request was answered to another leader serves nobody',
  (stage) => stage.killLeader(),
);
