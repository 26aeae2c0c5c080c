import { createHash } from 'node:crypto';
import test from 'ava';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import { partOf, shortTest } from '../support/suite-part.ts';
import { fail, ipsOf, succeed, succeedSilently } from './support/cni-answers.ts';
import { openScenes, RULE_MODES } from './support/scene.ts';

/** The other layout is tried in the suite `long`. */
const MODES = partOf(RULE_MODES, (mode) => mode === 'compact');

const scenes = openScenes(
  test,
  MODES.map((ruleMode) => ({ ruleMode, nodes: [{ name: 'n1', enis: [{ eniId: 'eni-1', ips: 8 }] }] })),
);

/** The host side's name in a result. */
function hostVethOf(result: JsonObject): string {
  const interfaces: unknown = result['interfaces'];
  const host = Array.isArray(interfaces) ? interfaces.filter(isObject).find((item) => !item['sandbox']) : undefined;
  return String(host?.['name']);
}

function named(text: string): string {
  return `eni${createHash('sha1').update(text).digest('hex').slice(0, 11)}`;
}

for (const ruleMode of MODES) {
  test.serial(`ADD: answers the same and changes nothing when it is repeated, ${ruleMode}`, async (t) => {
    const { node, vpc } = scenes.get(ruleMode);
    const pod = await node.addPod();
    const before = await node.netns.ipJson('-d', 'link', 'show', 'type', 'veth');
    t.deepEqual(succeed(t, await node.call('ADD', pod)), pod.result);
    t.deepEqual(await node.netns.ipJson('-d', 'link', 'show', 'type', 'veth'), before);
    t.true(await pod.netns.ping(vpc.outside.ip));
    await scenes.verify(t, ruleMode);
    await node.delete(pod);
  });

  test.serial(`ADD: is refused for the same container in another netns, ${ruleMode}`, async (t) => {
    const { node, vpc } = scenes.get(ruleMode);
    const pod = await node.addPod();
    const elsewhere = { ...pod, netns: await node.newNetns() };
    t.deepEqual(fail(t, await node.call('ADD', elsewhere)), {
      code: 106,
      msg: `interface eth0 of container ${pod.containerId} is attached already, in netns ${pod.netns.path}`,
      details: `asked for netns ${elsewhere.netns.path}; DEL it first`,
    });
    t.deepEqual(await elsewhere.netns.linkNames(), ['lo']);
    t.true(await pod.netns.ping(vpc.outside.ip));
    await node.delete(pod);
    await scenes.verify(t, ruleMode);
  });

  test.serial(`DEL: a late one of a Pod's old sandbox does not touch its new one, ${ruleMode}`, async (t) => {
    const { node, vpc } = scenes.get(ruleMode);
    const identity = { namespace: 'shop', name: 'cart-0' };
    const old = await node.addPod(identity);
    const young = await node.addPod(identity);
    t.not(young.ip, old.ip);
    t.is(hostVethOf(old.result), named('shop.cart-0'), "the product's name");
    t.is(hostVethOf(young.result), named(`${young.containerId}.eth0`), 'that name belongs to a live sandbox');
    t.true(await old.netns.ping(young.ip));

    await node.delete(old);
    await scenes.verify(t, ruleMode);
    t.true(await young.netns.ping(vpc.outside.ip));
    t.true(await node.netns.ping(young.ip));
    // And once more, by the spool's way, without a netns.
    succeedSilently(t, await node.call('DEL', old, { env: { CNI_NETNS: '' } }));
    t.true(await young.netns.ping(vpc.outside.ip));

    const third = await node.addPod(identity);
    t.is(hostVethOf(third.result), named('shop.cart-0'), 'the name is free again');
    await node.delete(young);
    t.true(await third.netns.ping(vpc.outside.ip));
    await node.delete(third);
    await scenes.verify(t, ruleMode);
  });

  test.serial(`ADD: makes a restarted sandbox whole when its netns died without a DEL, ${ruleMode}`, async (t) => {
    const { node, vpc } = scenes.get(ruleMode);
    const pod = await node.addPod();
    await pod.netns.close();
    // The same container id and the same path, and behind it another namespace.
    await vpc.router.run(['ip', 'netns', 'add', pod.netns.name]);
    await pod.netns.ip('link', 'set', 'lo', 'up');
    const again = await node.add(pod);
    t.true(await again.netns.ping(vpc.outside.ip));
    await scenes.verify(t, ruleMode);
    await node.delete(again);
    await scenes.verify(t, ruleMode);
  });
}

const NAMES: readonly {
  readonly title: string;
  readonly ifName?: string;
  readonly args?: string | null;
  readonly containerId?: string;
  readonly hostName: (containerId: string) => string;
}[] = [
  { title: 'IFNAME is net1', ifName: 'net1', hostName: (id) => named(`${id}.net1`) },
  { title: 'IFNAME has 15 bytes', ifName: 'a23456789.12345', hostName: (id) => named(`${id}.a23456789.12345`) },
  { title: 'CNI_ARGS is not set', args: null, hostName: (id) => named(`${id}.eth0`) },
  { title: 'CNI_ARGS is empty', args: '', hostName: (id) => named(`${id}.eth0`) },
  {
    title: 'CNI_ARGS has nothing of Kubernetes',
    args: 'IgnoreUnknown=1;FOO=bar',
    hostName: (id) => named(`${id}.eth0`),
  },
  { title: 'the Pod name is missing', args: 'K8S_POD_NAMESPACE=shop', hostName: (id) => named(`${id}.eth0`) },
  {
    title: 'the Pod name is empty',
    args: 'K8S_POD_NAMESPACE=shop;K8S_POD_NAME=',
    hostName: (id) => named(`${id}.eth0`),
  },
  {
    title: 'all names are as long as they may be',
    containerId: 'c'.repeat(200),
    args: `K8S_POD_NAMESPACE=${'n'.repeat(63)};K8S_POD_NAME=${'p'.repeat(253)}`,
    hostName: () => named(`${'n'.repeat(63)}.${'p'.repeat(253)}`),
  },
  {
    title: 'the container id has every sign that it may have',
    containerId: '0aZ_.-9',
    args: null,
    hostName: () => named('0aZ_.-9.eth0'),
  },
];

for (const { title, hostName, ...options } of NAMES) {
  shortTest.serial(`ADD, CHECK, DEL: work when ${title}`, async (t) => {
    const { node, vpc } = scenes.get('compact');
    const pod = await node.addPod(options);
    t.is(hostVethOf(pod.result), hostName(pod.containerId));
    t.deepEqual(await pod.netns.linkNames(), [pod.ifName, 'lo'].sort());
    t.true(await pod.netns.ping(vpc.outside.ip));
    await scenes.verify(t, 'compact');
    succeedSilently(t, await node.call('CHECK', pod, { conf: node.conf({ prevResult: pod.result }) }));
    await node.delete(pod);
    await scenes.verify(t, 'compact');
  });
}

shortTest.serial('ADD: puts its result behind that of the plugin before it in the chain', async (t) => {
  const { node } = scenes.get('compact');
  const before = {
    cniVersion: '1.0.0',
    interfaces: [{ name: 'lo', mac: '00:00:00:00:00:00' }],
    ips: [{ address: '127.0.0.1/8', interface: 0 }],
    routes: [{ dst: '127.0.0.0/8' }],
    dns: { nameservers: ['10.0.0.2'] },
  };
  const pod = await node.newPod();
  const result = succeed(t, await node.call('ADD', pod, { conf: node.conf({ prevResult: before }) }));
  const [ip] = ipsOf(result).slice(1);
  t.like(result, {
    interfaces: { 0: before.interfaces[0], 1: { name: named(`default.${pod.name}`) }, 2: { name: 'eth0' } },
    ips: { 0: before.ips[0], 1: { address: `${ip}/32`, interface: 2 } },
    routes: { 0: before.routes[0], 1: { dst: '0.0.0.0/0' } },
    dns: before.dns,
  });
  await node.delete(pod);
});
