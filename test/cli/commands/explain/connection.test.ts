import test from 'ava';
import { buildConnection, selectTargets } from '../../../../cli/commands/explain/explain-connection.ts';
import type { LbRow, TargetRow } from '../../../../cli/commands/lb/build-lb-rows.ts';
import type { NodePortFacts } from '../../../../cli/commands/lb/find-node-ports.ts';
import { findListeners } from '../../../../cli/commands/lb/select-connection.ts';
import type { Explanation } from '../../../../inspection/explain/explanation.ts';
import { UserError } from '../../../../runtime/user-error.ts';
import { SAMPLE } from './explanation-sample.ts';

const VIP = '198.18.0.2';
const CLIENT = '10.0.0.9';
const NODE_IP = '10.0.0.2';

const target = (ip: string, more: Partial<TargetRow> = {}): TargetRow => ({
  ...{ ip, port: 80, weight: 10, kind: 'ENI', health: 'healthy', of: `Pod default/of-${ip}`, node: 'n1' },
  ...{ getsConnections: true, reason: 'it gets connections' },
  ...more,
});
const nodePort = target(NODE_IP, { port: 30_080, kind: 'CVM', of: 'Node n1' });
const unhealthy = { getsConnections: false, health: 'unhealthy', reason: 'its check fails' } as const;

function rowOf(targets: readonly TargetRow[], more: Partial<LbRow> = {}): LbRow {
  const listener = { listenerId: 'lbl-1', protocol: 'TCP', port: 80, check: 'TCP', targets };
  return {
    ...{ service: 'default/web', state: 'ready', loadBalancerId: 'lb-1', type: 'OPEN', addresses: [VIP] },
    ...{ securityGroupIds: ['sg-1'], passesToTarget: true, isSettled: true, listeners: [listener], problems: [] },
    ...more,
  };
}

/** What explain says of a packet to a Pod of this node: in order, with its answer. */
const WALK: Explanation = {
  ...{ subject: 'Pod', element: 'pod:1', findings: [] },
  paths: [
    {
      ...{ direction: 'to-pod', from: CLIENT, to: '10.0.1.7' },
      hops: [{ kind: 'eni', element: 'eni:1', title: 'ENI eni-1', details: [], verdict: 'ok' }],
    },
    { direction: 'from-pod', from: '10.0.1.7', to: CLIENT, hops: [] },
  ],
};

type Given = { readonly walks?: Readonly<Record<string, Explanation>>; readonly ports?: NodePortFacts };

function explained(row: LbRow, { walks = {}, ports }: Given = {}): Explanation {
  const connection = { address: VIP, port: 80 };
  return buildConnection({
    ...{ connection, client: CLIENT, listeners: findListeners([row], connection), nodeIps: [NODE_IP] },
    walks: new Map(Object.entries(walks)),
    nodePorts: new Map(ports === undefined ? [] : [[row.service, ports]]),
  });
}

/** `kind verdict` of each hop of each path. */
const hopsOf = ({ paths }: Explanation): readonly string[] =>
  paths.map(({ hops }) => hops.map(({ kind, verdict }) => `${kind} ${verdict}`).join(', '));
const textOf = (explanation: Explanation): string => JSON.stringify(explanation);

const HERE = { '10.0.1.7': WALK } as const;
const PORTS: NodePortFacts = {
  policy: 'Cluster',
  ports: [30_080],
  pods: [{ name: 'Pod default/web-0', node: 'n2' }],
};

const CASES: readonly (readonly [
  what: string,
  targets: readonly TargetRow[],
  given: Given,
  hops: readonly string[],
  says: RegExp,
])[] = [
  [
    'a Pod of this node',
    [target('10.0.1.7'), target('10.0.1.8', { node: 'n2' })],
    { walks: HERE },
    ['cloud ok, cloud ok, eni ok', ''],
    /lb-1 \(OPEN\) takes TCP\/80 of Service default\/web by listener lbl-1.*admits by sg-1, and nothing else.*2 of 2 targets/,
  ],
  [
    'a Pod of another node alone',
    [target('10.0.1.8', { node: 'n2' })],
    {},
    ['cloud ok, cloud unknown'],
    /it is of node n2, and this is another one.*next: on n2: tke-eni explain 198\.18\.0\.2:80 --from 10\.0\.0\.9/,
  ],
  [
    'a node port of this node',
    [nodePort],
    { ports: PORTS },
    ['cloud ok, cloud ok, nft unknown'],
    /externalTrafficPolicy Cluster: kube-proxy masquerades.*on n2: tke-eni explain default\/web-0 --from 10\.0\.0\.2/,
  ],
  [
    'a node port that keeps the client',
    [nodePort],
    { ports: { ...PORTS, policy: 'Local' } },
    ['cloud ok, cloud ok, nft unknown'],
    /they see the address of the client.*on n2: tke-eni explain default\/web-0 --from 10\.0\.0\.9/,
  ],
  [
    'a node port of a Service without Pods',
    [nodePort],
    { ports: { ...PORTS, pods: [] } },
    ['cloud ok, cloud ok, nft unknown'],
    /no Pod of the Service is known to be ready/,
  ],
  [
    'a Pod in the network of this node',
    [nodePort],
    { ports: { ...PORTS, ports: [] } },
    ['cloud ok, cloud ok, pod ok'],
    /the Pod sees the address of the client, 10\.0\.0\.9/,
  ],
  [
    'a Pod of this node that is not healthy',
    [target('10.0.1.7', unhealthy)],
    { walks: HERE },
    ['cloud broken, cloud ok, eni ok', ''],
    /none of 1 targets gets connections/,
  ],
  [
    'nothing of the cluster, beside a Pod',
    [target('10.0.1.7'), target('10.0.1.99', { of: '', node: '', reason: 'no Pod and no Node has this address' })],
    { walks: HERE },
    ['cloud warning, cloud ok, eni ok', ''],
    /no Pod and no Node has 10\.0\.1\.99:80/,
  ],
  ['nothing at all', [], {}, ['cloud broken'], /none of 0 targets gets connections/],
];

for (const [what, targets, given, hops, says] of CASES) {
  test(`a connection to a load balancer whose target is ${what}`, (t) => {
    const explanation = explained(rowOf(targets), given);
    t.deepEqual(hopsOf(explanation), hops);
    t.regex(textOf(explanation), says);
  });
}

test('what is wrong in the Pod is found by the connection too', (t) => {
  const explanation = explained(rowOf([target('10.0.1.7')]), { walks: { '10.0.1.7': SAMPLE } });
  t.deepEqual(
    explanation.findings.map(({ id }) => id),
    ['rule-missing', 'mtu-mismatch'],
  );
});

test('two targets of a node are followed, those that get connections first', (t) => {
  const targets = [target('10.0.1.7', unhealthy), target('10.0.1.8'), target('10.0.1.9'), target('10.0.1.10')];
  const [one] = findListeners([rowOf(targets)], { address: VIP, port: 80 });
  if (one === undefined) return t.fail();
  const ips = selectTargets(one, (ip) => ip !== '10.0.1.9').map(({ ip }) => ip);
  t.deepEqual(ips, ['10.0.1.8', '10.0.1.10']);
  const many = Array.from({ length: 200 }, (_, at) => target(`10.0.2.${at}`, { node: `n${at}` }));
  const [path] = explained(rowOf(many)).paths;
  t.true((path?.hops[0]?.details.length ?? 0) < 20, 'a listener of many targets is printed in few lines');
});

const WRONG: readonly (readonly [what: string, address: string, port: number, row: LbRow, says: RegExp])[] = [
  [
    'no load balancer has it',
    '198.18.0.3',
    80,
    rowOf([]),
    /no load balancer of a Service has 198\.18\.0\.3 \| tke-eni lb/,
  ],
  [
    'no listener is at the port',
    VIP,
    81,
    rowOf([]),
    /198\.18\.0\.2 \(lb-1 of Service default\/web\) does not listen at port 81 \| it listens at TCP\/80/,
  ],
  [
    'there is no listener yet',
    VIP,
    80,
    rowOf([], { state: 'creating', listeners: [] }),
    /does not listen at port 80 \| it has no listener of the Service, its state is creating/,
  ],
];

for (const [what, address, port, row, says] of WRONG) {
  test(`one error with the next step: ${what}`, (t) => {
    const error = t.throws(() => findListeners([row], { address, port }), { instanceOf: UserError });
    t.is(error.code, 'NOT_FOUND');
    t.regex(`${error.message} | ${error.next}`, says);
  });
}
