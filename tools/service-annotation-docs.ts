import type { RefusedRow, ServedRow } from '../cloud-controller-manager/services/annotation-table.ts';
import { WRITTEN_ANNOTATIONS } from '../cloud-controller-manager/services/read-annotations.ts';
import { REFUSED_ANNOTATIONS } from '../cloud-controller-manager/services/refused-annotations.ts';
import { SERVED_ANNOTATIONS } from '../cloud-controller-manager/services/served-annotations.ts';
import { NODE_BACKEND_ANNOTATION } from '../crd/names.ts';

/** Renders `docs/reference/service-annotations.md`. */
export function renderServiceAnnotationDocs(): string {
  const refused = Map.groupBy(REFUSED_ANNOTATIONS, ({ place }) => place);
  const elsewhere = [...refused].filter(([place]) => place !== 'Service');
  return [
    '<!-- Written by `make gen` from cloud-controller-manager/services/served-annotations.ts and refused-annotations.ts. -->',
    '# Annotations of Services of type LoadBalancer',
    '',
    'The names are those of TKE. Each is obeyed, or refused with an event of the Service (`AnnotationRefused`); none is read and',
    'ignored. One that is malformed is an event too (`AnnotationInvalid`), and nothing of the load balancer changes until it is',
    'corrected. A name that has one of the prefixes of this page and is not on it is reported as well.',
    '',
    'They have an effect where `tke-cloud-controller-manager` runs with `--load-balancers=clb`:',
    '[cloud-controller-manager.md](../cloud-controller-manager.md#load-balancers-of-services).',
    '',
    '## Obeyed',
    '',
    '| annotation | value | effect |',
    '|---|---|---|',
    ...Object.values<ServedRow<unknown>>(SERVED_ANNOTATIONS).map(servedLine),
    '',
    '## Refused',
    '',
    '"stops": the load balancer is not made or changed while the annotation is there, as it would be another one than the one',
    'that is meant. Values that ask for nothing are not reported.',
    '',
    '| annotation | in TKE | why not | instead | |',
    '|---|---|---|---|---|',
    ...(refused.get('Service') ?? []).map(refusedLine),
    '',
    '## Written by the controller',
    '',
    'Do not edit: what is written into them by others is replaced.',
    '',
    '| annotation | what |',
    '|---|---|',
    ...WRITTEN_ANNOTATIONS.map(({ name, means }) => `| \`${name}\` | ${means} |`),
    '',
    '## On Nodes',
    '',
    '| name | effect |',
    '|---|---|',
    `| annotation \`${NODE_BACKEND_ANNOTATION}\` | \`"false"\`: the Node is no backend of any load balancer. Another value than "true" or "false" keeps it out too |`,
    "| label `node.kubernetes.io/exclude-from-external-load-balancers` | upstream's: unless its value is false, the Node is no backend |",
    '',
    '## Not read at all',
    '',
    'These stand in objects for which the service controller needs no right, so they have no event either.',
    '',
    '| where | name | in TKE | why not |',
    '|---|---|---|---|',
    ...elsewhere.flatMap(([place, rows]) =>
      rows.map(({ name, means, why }) => `| ${place} | \`${name}\` | ${means} | ${why} |`),
    ),
    '',
  ].join('\n');
}

/** Renders the line of an annotation that is obeyed. */
export function servedLine({ name, form, means, olderNames = [], isLabelToo }: ServedRow<unknown>): string {
  const older = olderNames.map((one) => `; also \`${one}\``).join('');
  const label = isLabelToo ? '; may be a label too' : '';
  return `| \`${name}\`${older}${label} | ${form} | ${means} |`;
}

/** Renders the line of an annotation that is refused. */
export function refusedLine({ name, means, why, instead, blocks }: RefusedRow): string {
  return `| \`${name}\` | ${means} | ${why} | ${instead} | ${blocks ? 'stops' : ''} |`;
}
