import test from 'ava';
import type { ApiFailure } from '../../../../agent/api/ops-messages.ts';
import type { Check } from '../../../../cli/commands/doctor/check.ts';
import {
  AGENT_CHECK,
  CNI_CHECK,
  SERVICE_CIDRS_CHECK,
  STATE_CHECK,
} from '../../../../cli/commands/doctor/check-agent.ts';
import {
  BRIDGE_CHECK,
  CONNTRACK_CHECK,
  INOTIFY_CHECK,
  KERNEL_CHECK,
  NEIGH_CHECK,
} from '../../../../cli/commands/doctor/check-kernel.ts';
import type { AgentProcess, AgentStatus, DoctorFacts } from '../../../../cli/commands/doctor/doctor-facts.ts';
import { known, unknown } from '../../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../../inspection/node/node-facts.ts';
import { doctorFacts, healthyNode, idsOf, nodeWith, nodeWithSysctl } from './facts.ts';

// The agent, what it keeps, what the runtime reads, and the kernel's limits.

type Case = readonly [when: string, facts: Partial<DoctorFacts>, finds: readonly string[]];
const agentProcess = (changes: Partial<AgentProcess>): DoctorFacts['agentProcess'] =>
  known({ pid: 4_711, isInContainer: true, isPrivileged: false, ...changes });
const node = (facts: NodeFacts): Partial<DoctorFacts> => ({ node: facts });

function apiFailure(kind: 'refused' | 'failing'): ApiFailure {
  return {
    ...{ call: 'update nodeeniconfigs', kind, code: 'FORBIDDEN', httpStatus: 403, text: 'no', next: 'grant it' },
    ...{ ageMs: 0, lastAgeMs: 0, count: 1, summary: 'the API server refuses', isNeededByPods: true },
  };
}

const CASES: readonly (readonly [Check, readonly Case[]])[] = [
  [
    AGENT_CHECK,
    [
      ['it is ready', {}, []],
      ['nobody answers', { socket: known({ path: '/run/x.sock', problem: 'it has ended' }) }, ['agent-dead']],
      ['it cannot serve', { status: status({ code: 50, message: 'no supply' }) }, ['agent-not-ready']],
      ['the API server refuses it', { status: status({ apiFailures: [apiFailure('refused')] }) }, ['api-refused']],
      ['the API server is away', { status: status({ apiFailures: [apiFailure('failing')] }) }, ['api-failing']],
      ['somebody undoes its repairs', { status: status({ held: ['ip rule add pref 1537'] }) }, ['repair-fight']],
      ['its last pass failed', { status: status({ lastPassError: 'EPERM' }) }, ['repair-failing']],
      ['it is privileged', { agentProcess: agentProcess({ isPrivileged: true }) }, ['agent-privileged']],
      ['it is root on the host', { agentProcess: agentProcess({ isPrivileged: true, isInContainer: false }) }, []],
      ['its root is not seen', { agentProcess: agentProcess({ isPrivileged: true, isInContainer: undefined }) }, []],
      ['its process is not seen', { agentProcess: known(undefined) }, []],
      [
        'it is privileged, and too old to say more',
        { status: unknown('too old', 'upgrade'), agentProcess: agentProcess({ isPrivileged: true }) },
        ['agent-privileged'],
      ],
      ['it is too old to say', { status: unknown('too old', 'upgrade') }, []],
    ],
  ],
  [STATE_CHECK, stateCases()],
  [
    SERVICE_CIDRS_CHECK,
    [
      ['a range is known', node(withDirect(['10.96.0.0/16'])), []],
      ['none is known', node(withDirect([])), ['service-cidrs-unknown']],
    ],
  ],
  [CNI_CHECK, cniCases()],
  [
    KERNEL_CHECK,
    [
      ['it is new enough', {}, []],
      ['it is too old', { kernel: kernelWith({ release: '4.14.105-tlinux' }) }, ['kernel-features']],
      [
        'it has no nf_tables',
        node({ ...healthyNode(), host: { ...healthyNode().host, nft: unknown('Protocol not supported', '') } }),
        ['kernel-features'],
      ],
      [
        'it listed what cannot be read',
        node({ ...healthyNode(), host: { ...healthyNode().host, unreadable: ['RTM_GETLINK: link: broken'] } }),
        ['kernel-unreadable'],
      ],
    ],
  ],
  [
    CONNTRACK_CHECK,
    [
      ['there is room', {}, []],
      [
        'the table is nearly full',
        { kernel: kernelWith({ conntrack: conntrack(220_000, 0) }) },
        ['conntrack-pressure'],
      ],
      ['it was full once', { kernel: kernelWith({ conntrack: conntrack(10, 4) }) }, ['conntrack-pressure']],
    ],
  ],
  [
    NEIGH_CHECK,
    [
      ['there is room', {}, []],
      ['many entries are permanent and none was refused', { kernel: neighs(1_020, 0) }, []],
      ['entries were refused', { kernel: neighs(1_020, 3) }, ['neigh-pressure']],
    ],
  ],
  [
    INOTIFY_CHECK,
    [
      ['there are some left', {}, []],
      ['nearly all are used', { inotify: known({ used: 120, max: 128 }) }, ['inotify-limits']],
    ],
  ],
  [
    BRIDGE_CHECK,
    [
      ['a bridge has Pods and the module is not there', node(bridged()), ['br-netfilter']],
      [
        'a bridge has Pods and the switch is off',
        node(nodeWithSysctl('net.bridge.bridge-nf-call-iptables', '0', bridged())),
        ['br-netfilter'],
      ],
      [
        'a bridge has Pods and the switch is on',
        node(nodeWithSysctl('net.bridge.bridge-nf-call-iptables', '1', bridged())),
        [],
      ],
    ],
  ],
];

for (const [check, cases] of CASES) {
  for (const [when, facts, finds] of cases) {
    const what = finds.length === 0 ? 'finds nothing' : `finds ${finds.join(', ')}`;
    test(`${check.id}: ${what} when ${when}`, (t) => {
      t.deepEqual(idsOf(check, doctorFacts(facts)), finds);
    });
  }
}

test('agent: what is refused is asked of kubectl as it is granted, for the account that was refused', (t) => {
  const fixOf = (changes: Partial<ApiFailure>): readonly string[] => {
    const facts = doctorFacts({ status: status({ apiFailures: [{ ...apiFailure('refused'), ...changes }] }) });
    const result = AGENT_CHECK.evaluate(facts);
    return result.kind === 'done' ? result.findings.flatMap(({ fix }) => fix) : [];
  };
  const user = 'system:serviceaccount:eni:agent';
  const text = `nodes "n1" is forbidden: User "${user}" cannot patch resource "nodes/status" in API group "" at the cluster scope`;
  const [whoMay, look] = fixOf({ call: 'patch nodes/status', text });
  t.is(whoMay, `kubectl auth can-i patch nodes --subresource=status --as=${user}`);
  t.regex(look ?? '', /^kubectl -n eni get pod /);
  const [plain] = fixOf({});
  t.is(plain, 'kubectl auth can-i update nodeeniconfigs --as=system:serviceaccount:kube-system:tke-eni-agent');
  const [hostile] = fixOf({ text: 'User "system:serviceaccount:a:b; rm -rf /" cannot update' });
  t.is(hostile, plain);
});

test('service-cidrs: is skipped on a node without exclusive ENIs', (t) => {
  t.is(SERVICE_CIDRS_CHECK.evaluate(doctorFacts()).kind, 'skipped');
});

/** A node whose agent plans exclusive ENIs. */
function withDirect(serviceCidrs: readonly string[]): NodeFacts {
  const healthy = healthyNode();
  if (healthy.agent.kind === 'unknown' || healthy.agent.value.node.kind === 'unknown') throw new Error('no record');
  const { value: agent } = healthy.agent;
  const { value: record } = healthy.agent.value.node;
  return {
    ...healthy,
    agent: known({ ...agent, node: known({ ...record, node: { ...record.node, hasDirect: true, serviceCidrs } }) }),
  };
}

test('br-netfilter: is skipped where no bridge has Pods', (t) => {
  t.is(BRIDGE_CHECK.evaluate(doctorFacts()).kind, 'skipped');
});

test('br-netfilter: is skipped where the bridge is Docker’s', (t) => {
  const { host, ...others } = bridged();
  const links = host.links.map((link) => (link.kind === 'bridge' ? { ...link, ifname: 'docker0' } : link));
  t.is(BRIDGE_CHECK.evaluate(doctorFacts({ node: { ...others, host: { ...host, links } } })).kind, 'skipped');
});

test('conntrack: calls a full table an error, a filling one a warning, what is past worth knowing', (t) => {
  const severityOf = (count: number, drop: number) => {
    const verdict = CONNTRACK_CHECK.evaluate(
      doctorFacts({ kernel: kernelWith({ conntrack: conntrack(count, drop) }) }),
    );
    return verdict.kind === 'done' ? verdict.findings.map(({ severity }) => severity) : [];
  };
  t.deepEqual([severityOf(262_000, 0), severityOf(220_000, 9), severityOf(10, 9)], [['error'], ['warning'], ['info']]);
});

function status(change: Partial<AgentStatus>): DoctorFacts['status'] {
  return known({ code: 0, message: '', details: '', held: [], lastPassError: '', ...change });
}

function kernelWith(change: object): DoctorFacts['kernel'] {
  const { kernel } = doctorFacts();
  if (kernel.kind === 'unknown') throw new Error(kernel.why);
  return known({ ...kernel.value, ...change });
}

function conntrack(count: number, drop: number) {
  return { count, max: 262_144, drop, earlyDrop: 0, insertFailed: 0 };
}

function neighs(entries: number, tableFulls: number): DoctorFacts['kernel'] {
  return kernelWith({ neigh: { ipv4: { entries, tableFulls }, ipv6: undefined } });
}

function bridged(): NodeFacts {
  return nodeWith(({ links }) => {
    const [some] = links;
    if (some === undefined) return {};
    const bridge = { ...some, ifindex: 800, ifname: 'cbr0', kind: 'bridge' };
    return { links: [...links, bridge, { ...some, ifindex: 801, ifname: 'veth0', kind: 'veth', master: 800 }] };
  });
}

function stateCases(): readonly Case[] {
  const { stateDir } = doctorFacts();
  const state = (change: object): Partial<DoctorFacts> =>
    stateDir.kind === 'known' ? { stateDir: known({ ...stateDir.value, ...change }) } : {};
  return [
    ['all is well', {}, []],
    ['there is no folder', state({ exists: false, journal: 'missing' }), ['journal-missing']],
    ['there is no journal', state({ journal: 'missing' }), ['journal-missing']],
    ['the journal is damaged', state({ journal: { damage: 'not a database' } }), ['journal-unreadable']],
    ['the journal is of another boot', state({ journal: 'other-boot' }), ['journal-of-another-boot']],
    ['it is on a disk', state({ isTmpfs: false }), ['state-dir-not-tmpfs']],
    ['it is full', state({ freeBytes: 0 }), ['state-dir-full']],
    ['DELs wait while the agent runs', state({ spooled: 3 }), ['spool-not-drained']],
    [
      'DELs wait for an agent that is dead',
      { ...state({ spooled: 3 }), socket: known({ path: '/run/x.sock', problem: 'it has ended' }) },
      [],
    ],
  ];
}

function cniCases(): readonly Case[] {
  const { cni } = doctorFacts();
  const files = (...names: readonly (readonly [string, string])[]): Partial<DoctorFacts> =>
    cni.kind === 'known'
      ? {
          cni: known({
            ...cni.value,
            confs: names.map(([name, type]) => ({
              path: `/etc/cni/net.d/${name}`,
              text: `{"plugins":[{"type":"${type}"}]}`,
            })),
          }),
        }
      : {};
  return [
    ['ours is first', files(['10-tke-eni.conflist', 'tke-route-eni'], ['87-podman.conflist', 'bridge']), []],
    ['there is none', files(), ['cni-conf-missing']],
    ['there is another CNI’s only', files(['05-cilium.conflist', 'cilium-cni']), ['cni-conf-missing']],
    [
      'another CNI’s comes first',
      files(['05-cilium.conflist', 'cilium-cni'], ['10-tke-eni.conflist', 'tke-route-eni']),
      ['cni-conf-not-first'],
    ],
    [
      'what comes first is no configuration',
      notJson(files(['05-broken.conflist', 'x'], ['10-tke-eni.conflist', 'tke-route-eni'])),
      [],
    ],
    [
      'multus comes first, by its daemon',
      withExecutable(files(['00-multus.conf', 'multus-shim'], ['10-tke-eni.conflist', 'tke-route-eni']), 'multus-shim'),
      [],
    ],
    ['its executable is not there', files(['10-tke-eni.conflist', 'tke-eni-ipamc']), ['plugin-missing']],
  ];
}

function notJson({ cni = doctorFacts().cni }: Partial<DoctorFacts>): Partial<DoctorFacts> {
  if (cni.kind === 'unknown') return {};
  const [first, ...others] = cni.value.confs;
  const broken = { path: first?.path ?? '', text: '{"plugins":[' };
  return { cni: known({ ...cni.value, confs: [broken, ...others] }) };
}

function withExecutable({ cni = doctorFacts().cni }: Partial<DoctorFacts>, name: string): Partial<DoctorFacts> {
  return cni.kind === 'unknown' ? {} : { cni: known({ ...cni.value, executables: [name] }) };
}
