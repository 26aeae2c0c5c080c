import { known } from '../../../inspection/node/known.ts';
import type { TrafficFacts } from '../../../inspection/node/node-facts.ts';

/** A namespace in which nothing was attached to links, and no IPsec policy is. */
export const NO_TRAFFIC: TrafficFacts = { qdiscs: known([]), filters: known([]), policies: known([]) };
