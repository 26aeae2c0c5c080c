import type { LabelSelector } from './label-selector.ts';

/** What annotations say of backends. Absent: the default. */
export type BackendSettings = {
  /** Selects the Nodes that are backends; absent: all. */
  readonly backendSelector?: LabelSelector;
  /** Whether a target of a Pod that ends keeps its connections, with weight 0; absent: true. */
  readonly drainsLeaving?: boolean;
  /** Whether a target of a Pod that is not ready keeps its connections, with weight 0; absent: false. */
  readonly drainsUnready?: boolean;
};
