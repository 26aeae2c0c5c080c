import { AGENT_LIFE_ANNOTATION } from '../../crd/names.ts';
import type { NodeEniConfig } from '../../crd/node-eni-config.ts';
import type { NodeSettings } from '../../crd/node-eni-config-annotations.ts';
import { nodeLimitsOf } from '../../crd/node-limits.ts';
import { familyOf } from '../../dataplane/ip-prefix.ts';
import { listOf, recordOf } from '../../runtime/json.ts';
import { type AgentSpec, type ObservedNec, type ReadinessSpec, UNREADABLE } from './publication.ts';

/**
 * Extracts from a NodeENIConfig what publication depends on.
 * @param damaged Fields of spec and status that are malformed.
 * @param settings The accepted settings of its annotations; a lower limit of theirs counts.
 */
export function observedNecOf(
  { spec, status, object }: NodeEniConfig,
  damaged: ReadonlySet<string> = new Set(),
  settings: NodeSettings = {},
): ObservedNec {
  // A malformed field of ours counts as absent, and so is written again.
  const isAgentFieldDamaged = AGENT_FIELDS.some((field) => damaged.has(field));
  return {
    spec: {
      desired: isAgentFieldDamaged ? undefined : spec?.desiredRouteENIIP,
      releasable: (spec?.releasableIPs ?? []).map(({ ip, assignmentID }) => ({ ip, assignmentId: assignmentID })),
      observedEpoch: spec?.observedSupplyEpoch,
      readyResources: spec?.readyResources ?? [],
      life: lifeOf(object),
    },
    exclusive: {
      desired: isAgentFieldDamaged ? undefined : spec?.desiredDirectENI,
      releasable: (spec?.releasableENIs ?? []).map((one) => ({ eniId: one.eniID, assignmentId: one.assignmentID })),
      enis: new Map(
        (status?.eniInfos ?? [])
          .filter(({ mode }) => mode === 'direct-eni')
          .map(({ eniID, assignmentID = '', state }) => [
            eniID,
            { assignmentId: assignmentID, isLeaving: state === 'Detaching' },
          ]),
      ),
    },
    ...eniPlacesOf(status, nodeLimitsOf(spec, settings)),
    supplyEpoch: isSupplyDamaged(damaged) ? UNREADABLE : (status?.supplyEpoch ?? 0),
    addresses: new Map(
      (status?.eniInfos ?? [])
        .flatMap((eni) => eni.addresses ?? [])
        .map(({ ip, assignmentID, state }) => [
          ip,
          { assignmentId: assignmentID, state: state === 'Assigned' ? 'assigned' : 'releasing' },
        ]),
    ),
  };
}

/** Counts the places for IPv4 addresses on the attached ENIs. One that is being released has its place still. */
function eniPlacesOf(
  { eniInfos = [] }: NonNullable<NodeEniConfig['status']> = {},
  { ipsPerEni }: ReturnType<typeof nodeLimitsOf>,
): Pick<ObservedNec, 'eniPlaces'> {
  if (ipsPerEni === undefined) return {};
  const serving = eniInfos.filter(
    ({ mode, state, draining }) => mode !== 'direct-eni' && state === 'Attached' && draining !== true,
  );
  const placesOn = ({ addresses = [] }: (typeof eniInfos)[number]): number =>
    Math.max(0, ipsPerEni - addresses.filter(({ ip }) => familyOf(ip) === 4).length);
  return { eniPlaces: serving.reduce((sum, eni) => sum + placesOn(eni), 0) };
}

/**
 * Returns why supply does not meet demand, as ipamd reports it: `SubnetExhausted: no free …`; undefined while it does.
 */
export function notReadyReasonOf(object: Readonly<Record<string, unknown>>): string | undefined {
  const { conditions } = recordOf(object['status']);
  const ready = listOf(conditions)
    .map(recordOf)
    .find(({ type }) => type === 'Ready');
  if (ready === undefined || ready['status'] === 'True') return undefined;
  const texts = [ready['reason'], ready['message']].filter((text) => typeof text === 'string' && text !== '');
  return texts.length === 0 ? undefined : texts.join(': ');
}

/** Reports whether the description of what the cloud assigned cannot be read as a whole. */
export function isSupplyDamaged(damaged: ReadonlySet<string>): boolean {
  return SUPPLY_FIELDS.some((field) => damaged.has(field));
}

/** Returns the whole object with the agent's own fields changed and everything else as it was. */
export function withAgentFields(
  object: Readonly<Record<string, unknown>>,
  own: AgentSpec | ReadinessSpec,
): Readonly<Record<string, unknown>> {
  const { observedEpoch, readyResources, life } = own;
  const metadata = recordOf(object['metadata']);
  return {
    ...object,
    metadata: { ...metadata, annotations: { ...recordOf(metadata['annotations']), [AGENT_LIFE_ANNOTATION]: life } },
    spec: {
      ...recordOf(object['spec']),
      ...('desired' in own ? demandFieldsOf(own) : {}),
      ...(observedEpoch === undefined ? {} : { observedSupplyEpoch: observedEpoch }),
      readyResources,
    },
  };
}

function demandFieldsOf({ desired, releasable, exclusive }: AgentSpec): Readonly<Record<string, unknown>> {
  return {
    desiredRouteENIIP: desired,
    releasableIPs: releasable.map(({ ip, assignmentId }) => ({ ip, assignmentID: assignmentId })),
    ...(exclusive === undefined
      ? {}
      : {
          desiredDirectENI: exclusive.desired,
          releasableENIs: exclusive.releasable.map(({ eniId, assignmentId }) => ({
            eniID: eniId,
            assignmentID: assignmentId,
          })),
        }),
  };
}

const AGENT_FIELDS = [
  'spec',
  'spec.desiredRouteENIIP',
  'spec.releasableIPs',
  'spec.desiredDirectENI',
  'spec.releasableENIs',
  'spec.observedSupplyEpoch',
  'spec.readyResources',
];
const SUPPLY_FIELDS = ['status', 'status.eniInfos', 'status.supplyEpoch'];

function lifeOf(object: Readonly<Record<string, unknown>>): string | undefined {
  const life = recordOf(recordOf(object['metadata'])['annotations'])[AGENT_LIFE_ANNOTATION];
  return typeof life === 'string' ? life : undefined;
}
