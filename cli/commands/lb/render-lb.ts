import { plainText } from '../../../runtime/plain-text.ts';
import { type Color, paint } from '../../output/color.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { IngressLbPlan } from './build-ingress-plan.ts';
import type { LbPlan } from './build-lb-plan.ts';
import { admissionText, type LbRow, type TargetRow } from './build-lb-rows.ts';

type Layout = { readonly width: number; readonly isColored: boolean };

const STATE_COLORS: Readonly<Record<LbRow['state'], Color | undefined>> = {
  ready: 'green',
  creating: 'yellow',
  missing: 'red',
  none: 'yellow',
  unknown: undefined,
  ignored: undefined,
};

const TARGETS: readonly Column<TargetRow>[] = [
  { title: '  TARGET', text: ({ ip, port }) => `  ${ip}:${port}` },
  { title: 'OF', text: ({ of }) => of || '-', color: ({ of }) => (of === '' ? 'red' : undefined) },
  { title: 'NODE', text: ({ node }) => node || '-', priority: 2 },
  { title: 'WEIGHT', text: ({ weight }) => `${weight}`, align: 'right' },
  {
    title: 'HEALTH',
    text: ({ health }) => health,
    color: ({ health }) => (health === 'unhealthy' ? 'red' : health === 'unknown' ? 'yellow' : undefined),
  },
  { title: 'REASON', text: ({ reason }) => reason, priority: 1 },
];

/** Renders Services with their load balancers, listeners and targets. */
export function renderLbRows(rows: readonly LbRow[], layout: Layout): string {
  if (rows.length === 0) return 'no Service has a load balancer\n';
  return rows.map((row) => renderRow(row, layout)).join('\n');
}

/** Renders how a connection goes on from its targets into Pods: who must admit it, and a command for each node. */
export function renderWayOn(rows: readonly LbRow[], client: string): string {
  const admitting = rows.map((row) => `${row.loadBalancerId ?? ''} ${admissionText(row)}`);
  const targets = rows.flatMap(({ listeners }) => listeners.flatMap((listener) => listener.targets));
  const lines = targets
    .filter(({ getsConnections, of }) => getsConnections && of !== '')
    .map(({ of, node, ip, port }) =>
      of.startsWith('Pod ')
        ? `on ${node}: tke-eni explain ${of.slice('Pod '.length)} --from ${client}`
        : `on ${node}: port ${port} of ${ip} is a node port; kube-proxy leads it to a Pod, which tke-eni explain POD follows`,
    );
  const groups = `\n${admitting.map((line) => `${plainText(line)}\n`).join('')}`;
  if (lines.length === 0) return `${groups}no target gets connections: the client gets no answer\n`;
  return `${groups}A connection goes to one of these, with the address of the client:\n${lines.map((line) => `  ${plainText(line)}\n`).join('')}`;
}

/** Renders what the controller would do. Without `ingressPlans` Ingresses were not read. */
export function renderLbPlans(
  { plans, ingressPlans }: { readonly plans: readonly LbPlan[]; readonly ingressPlans?: readonly IngressLbPlan[] },
  { isColored }: Layout,
): string {
  const named = [
    ...plans.map((plan) => ({ ...plan, name: plan.service, secrets: [] })),
    ...(ingressPlans ?? []).map((plan) => ({ ...plan, name: `Ingress ${plan.ingresses.join(', ')}` })),
  ];
  const count = named.reduce((sum, { steps }) => sum + steps.length, 0);
  const parts = named
    .filter(({ steps, notices }) => steps.length > 0 || notices.length > 0)
    .map(({ name, steps, notices, secrets }) => {
      const lines = [
        paint(plainText(name), 'bold', isColored),
        ...steps.flatMap(({ kind, objects, reason }, index) => [
          `  ${index + 1}. ${kind}: ${plainText(reason)}`,
          ...objects.map((object) => `       ${plainText(object)}`),
        ]),
        ...notices.map(({ reason, message, blocks }) =>
          paint(`  ${blocks ? 'nothing is changed' : 'note'}: ${reason}: ${plainText(message)}`, 'yellow', isColored),
        ),
        ...(secrets.length === 0 ? [] : [plainText(`  Secrets are not read, nor compared: ${secrets.join(', ')}`)]),
      ];
      return `${lines.join('\n')}\n\n`;
    });
  const owners =
    ingressPlans === undefined ? '' : ` and ${ingressPlans.flatMap((plan) => plan.ingresses).length} Ingresses`;
  return `${parts.join('')}${count} calls for ${plans.length} Services${owners}\n`;
}

function renderRow(row: LbRow, layout: Layout): string {
  const { service, state, loadBalancerId = '-', type = '', isOwn, addresses, listeners, problems } = row;
  const sharing = isOwn === false ? ', exists for others too' : '';
  const protection = row.isDeleteProtected ? ', protected against deletion' : '';
  const colored = paint(state, STATE_COLORS[state] ?? 'dim', layout.isColored);
  const what = plainText(
    `${loadBalancerId} ${type} ${addresses.join(', ') || 'without address'}${sharing}${protection}`,
  );
  const head = `${paint(plainText(service), 'bold', layout.isColored)}  ${colored}  ${what}\n`;
  const body = listeners.map(({ listenerId, protocol, port, check, targets }) => {
    const title = `  ${protocol}/${port}  ${listenerId}  check ${check}\n`;
    return `${plainText(title.trimEnd())}\n${targets.length === 0 ? '  no targets\n' : renderTable(targets, TARGETS, layout)}`;
  });
  const faults = problems.map((problem) => `  ${paint(plainText(problem), 'red', layout.isColored)}\n`);
  const notes = (row.notices ?? []).map(({ reason, message }) => {
    return `  ${paint(`${reason}: ${plainText(message)}`, 'yellow', layout.isColored)}\n`;
  });
  const calls = row.plannedCalls ?? 0;
  const plan = calls === 0 ? '' : `  ${calls} calls to come: tke-eni lb ${plainText(service)} --plan\n`;
  return `${head}${body.join('')}${faults.join('')}${notes.join('')}${plan}`;
}
