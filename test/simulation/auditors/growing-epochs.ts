import type { OpenAuditor } from './auditor.ts';
import { necFacts } from './nec-facts.ts';

/** Most intents that an object has room for. */
const MOST_INTENTS = 16;

/**
 * A9: epochs of the supply fall only by a restore, and an assignment id names one address on one ENI forever.
 * A14: no object has more calls on record than there is room for.
 */
export const openGrowingEpochs: OpenAuditor = (world) => {
  const places = new Map<string, string>();
  return {
    name: 'A9',
    change: (plural, { object, previous, type }) => {
      if (plural !== 'nodeeniconfigs' || type === 'DELETED') return;
      const { name } = object.metadata;
      const { spec, status } = necFacts(object);
      const before = previous === undefined ? undefined : necFacts(previous);
      for (const [field, is, was] of [
        ['supplyEpoch', status.supplyEpoch, before?.status.supplyEpoch],
        ['observedSupplyEpoch', spec.observedSupplyEpoch, before?.spec.observedSupplyEpoch],
      ] as const)
        if ((is ?? 0) < (was ?? 0)) world.violate('A9', `${field} of ${name} falls from ${was} to ${is}`);
      if ((status.intents ?? []).length > MOST_INTENTS)
        world.violate('A14', `${name} has ${status.intents?.length} calls`);
      for (const { eniID, addresses = [] } of status.eniInfos ?? []) {
        for (const { ip, assignmentID } of addresses) {
          const place = `${ip} on ${eniID}`;
          const known = places.get(assignmentID);
          if (known !== undefined && known !== place)
            world.violate('A9', `${assignmentID} names ${known} and ${place}`);
          places.set(assignmentID, place);
        }
      }
    },
  };
};
