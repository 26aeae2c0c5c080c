import test from 'ava';
import type { BridgePods } from '../../../../agent/api/ops-messages.ts';
import type { Check } from '../../../../cli/commands/doctor/check.ts';
import { BRIDGE_PORTS_CHECK, MASQUERADE_CHECK, POD_CIDR_CHECK } from '../../../../cli/commands/doctor/check-gr-pods.ts';
import type { DoctorFacts } from '../../../../cli/commands/doctor/doctor-facts.ts';
import { ifKnown, known, unknown } from '../../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../../inspection/node/node-facts.ts';
import type { LinkMessage } from '../../../../netlink/link-message.ts';
import { BLOCK, CBR0_IFINDEX, grNode, POD_IP } from '../../../inspection/node/gr-node.ts';
import { doctorFacts, iptables } from './facts.ts';

// A node with one GlobalRoute Pod of 172.20.0.0/26 on the bridge, and what can be wrong around it.

const live = (changes: Partial<BridgePods> = {}): DoctorFacts['status'] => {
  const bridge: BridgePods = {
    ...{ defaultNetwork: 'tke-bridge', podCidrs: [BLOCK], formerCidrs: [], addresses: 61, inUse: 1, problem: '' },
    ...{ masquerade: true, masqueradeWhy: 'there is no ip-masq-agent', wiring: 'bridge', ...changes },
  };
  return known({ code: 0, message: '', details: '', held: [], lastPassError: '', bridge });
};

const facts = (changes: Partial<DoctorFacts> = {}): DoctorFacts =>
  doctorFacts({ node: grNode(), status: live(), ...changes });
const chain = (name: string): NodeFacts => {
  const node = grNode();
  const nft = known({ objects: [{ chain: { family: 'ip', table: 'nat', name } }], ourTable: undefined });
  return { ...node, host: { ...node.host, nft } };
};
const foreign: LinkMessage = {
  ...(grNode().host.links[0] as LinkMessage),
  ifindex: 77,
  ifname: 'veth77',
  master: CBR0_IFINDEX,
};
const OFF = { masquerade: false, masqueradeWhy: 'ip-masq-agent has the ConfigMap kube-system/ip-masq-agent' };

const CASES: readonly (readonly [Check, when: string, DoctorFacts, finds: readonly string[]])[] = [
  [POD_CIDR_CHECK, 'all is well', facts(), []],
  [POD_CIDR_CHECK, 'there is none', facts({ status: live({ podCidrs: [] }) }), ['pod-cidr-missing error']],
  [
    POD_CIDR_CHECK,
    'there is none, and Pods do not need one by default',
    facts({ status: live({ podCidrs: [], defaultNetwork: 'tke-route-eni' }) }),
    [],
  ],
  [
    POD_CIDR_CHECK,
    'it changed and Pods live in the former one',
    facts({ status: live({ podCidrs: ['172.20.0.64/26'] }) }),
    ['pod-cidr-changed warning'],
  ],
  [
    POD_CIDR_CHECK,
    'it has the addresses of a subnet with an ENI of this node',
    facts({ status: live({ podCidrs: ['10.0.0.0/16'] }), node: grNode('10.0.0.0/16') }),
    ['pod-cidr-overlap error'],
  ],
  [
    POD_CIDR_CHECK,
    'the agent refuses it for a network that the node does not show',
    facts({ status: live({ problem: `podCIDR ${BLOCK} overlaps a network of --vpc-cidr, 172.16.0.0/12` }) }),
    ['pod-cidr-overlap error'],
  ],
  [BRIDGE_PORTS_CHECK, 'its ports are ours', facts(), []],
  [
    BRIDGE_PORTS_CHECK,
    'another plugin has a Pod on it',
    facts({ node: grNode(BLOCK, [foreign]) }),
    ['bridge-foreign-port error'],
  ],
  [
    BRIDGE_PORTS_CHECK,
    'another plugin has a Pod on it, and is the default',
    facts({ node: grNode(BLOCK, [foreign]), status: live({ defaultNetwork: 'tke-route-eni' }) }),
    ['bridge-foreign-port warning'],
  ],
  [
    BRIDGE_PORTS_CHECK,
    'host-local has a file beside the lease of the same sandbox',
    facts({ hostLocal: known([{ ip: POD_IP, containerId: leaseId(), path: '/x' }]) }),
    [],
  ],
  [
    BRIDGE_PORTS_CHECK,
    'host-local has another address',
    facts({ hostLocal: known([{ ip: '172.20.0.9', containerId: 'old', path: '/x' }]) }),
    ['host-local-left warning'],
  ],
  [
    BRIDGE_PORTS_CHECK,
    'host-local has the same address for another sandbox',
    facts({ hostLocal: known([{ ip: POD_IP, containerId: 'old', path: '/x' }]) }),
    ['host-local-left error'],
  ],
  [MASQUERADE_CHECK, 'the agent does', facts(), []],
  [
    MASQUERADE_CHECK,
    'the agent and ip-masq-agent do',
    facts({ node: chain('IP-MASQ-AGENT') }),
    ['gr-masquerade warning'],
  ],
  [MASQUERADE_CHECK, 'ip-masq-agent does', facts({ node: chain('IP-MASQ-AGENT'), status: live(OFF) }), []],
  [MASQUERADE_CHECK, 'none does', facts({ status: live(OFF) }), ['gr-masquerade warning']],
  [
    MASQUERADE_CHECK,
    'none does, on purpose',
    facts({ status: live({ masquerade: false, masqueradeWhy: '--gr-masquerade=false' }) }),
    ['gr-masquerade info'],
  ],
  [
    MASQUERADE_CHECK,
    'a rule of a person does',
    facts({ status: live(OFF), iptables: iptables('-A POSTROUTING -s 172.20.0.0/16 -o eth0 -j MASQUERADE') }),
    [],
  ],
  [
    MASQUERADE_CHECK,
    'a container engine does, for its own',
    facts({ status: live(OFF), iptables: iptables('-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE') }),
    ['gr-masquerade warning'],
  ],
];

function leaseId(): string {
  return ifKnown(grNode().agent)?.journal.leases.find(({ block }) => block !== undefined)?.containerId ?? '';
}

for (const [check, when, input, expected] of CASES) {
  test(`doctor: ${check.id} of GlobalRoute Pods, when ${when}`, (t) => {
    const verdict = check.evaluate(input);
    if (verdict.kind === 'skipped') return t.fail(verdict.why);
    const found = verdict.findings.map(({ id, severity }) => `${id} ${severity}`);
    t.deepEqual(found, expected);
    t.true(verdict.findings.every(({ id }) => check.finds.some((each) => each === id)));
  });
}

test('doctor: nothing is said about GlobalRoute Pods where there are none', (t) => {
  for (const check of [POD_CIDR_CHECK, BRIDGE_PORTS_CHECK, MASQUERADE_CHECK]) {
    t.is(check.evaluate(doctorFacts()).kind, 'skipped');
    t.is(check.evaluate(doctorFacts({ status: unknown('it is down', '') })).kind, 'skipped');
  }
});
