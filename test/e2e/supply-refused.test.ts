import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { parse, stringify } from 'yaml';
import { openOpsCaller } from '../support/ops-call.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openTrial, type Trial } from './support/trial.ts';

type WrittenEni = Record<string, unknown> & { addresses: Record<string, unknown>[] };
type Written = { status: { eniInfos: [WrittenEni, WrittenEni]; supplyEpoch?: number } };

/** Of the node: its address, and MACs of its links. */
type Facts = { readonly ip: string; readonly mac: string; readonly bridgeMac: string; readonly usedMac: string };

/** One wrong part of the first ENI, and what the agent says of it. */
type WrongPart = {
  readonly title: string;
  readonly edit: (eni: WrittenEni, facts: Facts) => void;
  readonly said: RegExp;
  /** The whole ENI is refused: default true. */
  readonly isWhole?: boolean;
};

const address = (ip: string) => (eni: WrittenEni) => {
  const [first] = eni.addresses;
  eni.addresses = [...eni.addresses.slice(1), { ...first, ip }];
};

const WRONG: readonly WrongPart[] = [
  {
    title: 'a subnet of all addresses',
    edit: (eni) => {
      eni['subnetCIDR'] = '0.0.0.0/0';
      address('10.0.1.1')(eni);
    },
    said: /its subnet 0\.0\.0\.0\/0 is larger than any/,
  },
  {
    title: "the node's address as the ENI's own",
    edit: (eni, { ip }) => Object.assign(eni, { primaryIP: ip, subnetCIDR: '10.0.0.0/16' }),
    said: /its own address \S+ is the node's own/,
  },
  {
    title: 'the MAC of the primary interface',
    edit: (eni, { mac }) => Object.assign(eni, { mac }),
    said: /that of the node's primary interface/,
  },
  {
    title: 'the MAC of lo',
    edit: (eni) => Object.assign(eni, { mac: '00:00:00:00:00:00' }),
    said: /is that of lo/,
  },
  {
    title: 'the MAC of a bridge',
    edit: (eni, { bridgeMac }) => Object.assign(eni, { mac: bridgeMac }),
    said: /that of docker0, of kind bridge/,
  },
  {
    title: 'the MAC of a link that somebody uses',
    edit: (eni, { usedMac }) => Object.assign(eni, { mac: usedMac }),
    said: /that of used0, which has the address 192\.0\.2\.1/,
  },
  {
    title: "the node's next hop",
    edit: (eni) => {
      eni['subnetCIDR'] = '10.0.0.0/8';
      address('10.0.3.1')(eni);
    },
    said: /10\.0\.3\.1 refused: it is the next hop of the node's route 198\.51\.100\.0\/24/,
    isWhole: false,
  },
  {
    title: 'metadata',
    edit: (eni) =>
      Object.assign(eni, {
        subnetCIDR: '169.254.0.0/16',
        primaryIP: '169.254.0.9',
        gateway: '169.254.0.1',
        addresses: [],
      }),
    said: /169\.254\.0\.0\/16/,
  },
  { title: 'the gateway', edit: address('10.0.2.1'), said: /10\.0\.2\.1 refused: it is the gateway/, isWhole: false },
  { title: 'the network', edit: address('10.0.2.0'), said: /10\.0\.2\.0 refused: it is the network/, isWhole: false },
  { title: 'broadcast', edit: address('10.0.2.255'), said: /it is the broadcast address/, isWhole: false },
];

/** What the node has of its own: it must not change. */
async function ownState(trial: Trial): Promise<string> {
  const { netns } = trial.node;
  const settings =
    'cd /proc/sys/net && for l in lo eth0 docker0 used0; do cat ipv4/conf/$l/rp_filter ipv6/conf/$l/accept_ra; done';
  return [
    await netns.run(['ip', '-o', 'address', 'show', 'dev', 'eth0']),
    await netns.run(['ip', '-o', 'address', 'show', 'dev', 'lo']),
    await netns.run(['ip', '-o', 'address', 'show', 'dev', 'docker0']),
    await netns.run(['ip', '-o', 'address', 'show', 'dev', 'used0']),
    await netns.run(['sh', '-c', settings]),
  ].join('\n');
}

test('agent: refuses what a node must not get, says so, and serves with the rest', async (t) => {
  t.timeout(180_000);
  const trial = await openTrial({ ruleMode: 'compact', ipsPerEni: 3 });
  try {
    const { node, vpc } = trial;
    const [link] = await node.netns.ipJson('address', 'show', 'dev', 'eth0');
    const addresses = (link?.['addr_info'] ?? []) as readonly { readonly local: string }[];
    await node.netns.ipBatch([
      'link add docker0 address 02:42:00:00:00:01 type bridge',
      'address add 172.17.0.1/16 dev docker0',
      'link set docker0 up',
      'link add used0 address 02:42:00:00:00:02 type veth peer name used1',
      'address add 192.0.2.1/24 dev used0',
      'link set used0 up',
      'route add 10.0.3.1/32 dev used0',
      'route add 198.51.100.0/24 via 10.0.3.1 dev used0',
    ]);
    const macs = { bridgeMac: '02:42:00:00:00:01', usedMac: '02:42:00:00:00:02' };
    const facts = { ...macs, ip: addresses[0]?.local ?? '', mac: String(link?.['address']) };
    const before = await ownState(trial);
    const path = join(node.dir, 'node.yaml');
    for (const { title, edit, said, isWhole = true } of WRONG) {
      const written = parse(vpc.nodeEniConfig('n1')) as Written;
      edit(written.status.eniInfos[0], facts);
      const loggedBefore = trial.agent.logs().length;
      writeFileSync(`${path}.new`, stringify(written));
      renameSync(`${path}.new`, path);
      const text = await waitUntil(() => said.exec(trial.agent.logs().slice(loggedBefore))?.[0], {
        what: `${title} is refused`,
        explain: () => trial.lastWords(),
      });
      t.regex(text, said);
      // The other ENI serves, and the node is reached and reaches others.
      const pod = await trial.addPod();
      t.true(await pod.netns.ping(vpc.outside.ip), title);
      if (isWhole) t.regex(pod.ip, /^10\.0\.1\./, `${title}: by the other ENI`);
      t.true(await node.netns.ping(vpc.outside.ip), title);
      await trial.delete(pod);
      t.is(await ownState(trial), before, title);
      trial.writeSupply();
    }
  } finally {
    await trial.close();
  }
});

type Address = { readonly family: string; readonly local: string; readonly prefixlen: number };

/** The problem of the first ENI, as the agent's pool shows it. */
async function problemOf(trial: Trial): Promise<string> {
  const ops = openOpsCaller(`unix:${trial.agent.socketPath}`);
  try {
    const { enis } = await ops.call('pool', {});
    return enis.find(({ eniId }) => eniId === 'eni-1')?.problem ?? '';
  } finally {
    ops.close();
  }
}

/** Links that a wrong supply names: the agent must leave them as they were. */
async function stateOf(trial: Trial, ifname: string): Promise<string> {
  const { netns } = trial.node;
  const settings = `cd /proc/sys/net && cat ipv4/conf/${ifname}/rp_filter ipv6/conf/${ifname}/accept_ra`;
  const [link] = await netns.ipJson('address', 'show', 'dev', ifname);
  const { addr_info: addresses, mtu, flags } = link ?? {};
  const isUp = Array.isArray(flags) && flags.includes('UP');
  const ofIpv4 = (addresses as readonly Address[]).filter(({ family }) => family === 'inet');
  const prefixes = ofIpv4.map(({ local, prefixlen }) => `${local}/${prefixlen}`);
  return JSON.stringify({ prefixes, mtu, isUp, settings: await netns.run(['sh', '-c', settings]) });
}

test('agent: undoes on a link what it set because of a wrong supply, also after a restart', async (t) => {
  t.timeout(180_000);
  const trial = await openTrial({ ruleMode: 'compact', ipsPerEni: 3 });
  try {
    const { node, vpc } = trial;
    await node.netns.ipBatch(['link add spare0 address 02:42:00:00:00:03 type veth peer name spare1']);
    await node.netns.sysctl({ 'net/ipv4/conf/spare0/rp_filter': 1, 'net/ipv6/conf/spare0/accept_ra': 1 });
    const path = join(node.dir, 'node.yaml');
    const write = (edit: (eni: WrittenEni) => void) => {
      const written = parse(vpc.nodeEniConfig('n1')) as Written;
      edit(written.status.eniInfos[0]);
      writeFileSync(`${path}.new`, stringify(written));
      renameSync(`${path}.new`, path);
    };
    const before = await stateOf(trial, 'spare0');
    for (const restarts of [false, true]) {
      write((eni) => Object.assign(eni, { mac: '02:42:00:00:00:03' }));
      await waitUntil(async () => (await stateOf(trial, 'spare0')).includes('10.0.2.2/32'), {
        what: 'the wrong link is set up',
        explain: () => trial.lastWords(),
      });
      t.not(await stateOf(trial, 'spare0'), before);
      if (restarts) await trial.killAgent();
      trial.writeSupply();
      if (restarts) await trial.startAgent();
      await waitUntil(async () => (await stateOf(trial, 'spare0')) === before, {
        what: `the wrong link is as before, ${restarts ? 'after a restart' : 'at once'}`,
        explain: () => trial.lastWords(),
      });
      await trial.settle('the right link is the ENI');
    }
    // Another address of its own on the right link: the wrong one goes, the right one comes.
    const right = await stateOf(trial, 'eth1');
    write((eni) => Object.assign(eni, { primaryIP: '10.0.2.99' }));
    await waitUntil(async () => (await stateOf(trial, 'eth1')).includes('10.0.2.99/32'), { what: 'the wrong address' });
    trial.writeSupply();
    await waitUntil(async () => (await stateOf(trial, 'eth1')) === right, {
      what: 'the wrong address is gone',
      explain: () => trial.lastWords(),
    });
  } finally {
    await trial.close();
  }
});

test('agent: a refused ENI stays a problem while Pods keep it', async (t) => {
  t.timeout(180_000);
  const trial = await openTrial({ ruleMode: 'compact', ipsPerEni: 3 });
  try {
    const { node, vpc } = trial;
    const pods = [await trial.addPod(), await trial.addPod()];
    const pod = pods.find(({ ip }) => ip.startsWith('10.0.2.'));
    if (pod === undefined) throw new Error(`no Pod on eni-1: ${pods.map(({ ip }) => ip).join(', ')}`);
    const written = parse(vpc.nodeEniConfig('n1')) as Written;
    written.status.eniInfos[0]['subnetCIDR'] = '0.0.0.0/0';
    const path = join(node.dir, 'node.yaml');
    writeFileSync(`${path}.new`, stringify(written));
    renameSync(`${path}.new`, path);
    await waitUntil(() => /larger than any/.test(trial.agent.logs()), { what: 'the refusal' });
    // A pass that repairs something, after the refusal.
    await node.netns.ip('link', 'set', 'eth1', 'down');
    await waitUntil(async () => (await stateOf(trial, 'eth1')).includes('"isUp":true'), { what: 'a repair' });
    t.regex(await problemOf(trial), /larger than any/);
    t.true(await pod.netns.ping(vpc.outside.ip), 'its Pod has its network');
    trial.writeSupply();
    await waitUntil(async () => (await problemOf(trial)) === '', { what: 'the refusal is over' });
  } finally {
    await trial.close();
  }
});
