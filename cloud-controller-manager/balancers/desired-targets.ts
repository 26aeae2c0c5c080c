/** The targets of a listener or of a rule, as they are asked for. */
export type DesiredTargets = {
  /** Absent: the targets stay as they are. */
  readonly targets?: readonly DesiredTarget[];
  /** Addresses whose targets, where they have a weight, stay as they are though they are not asked for. */
  readonly keptIps?: readonly string[];
  /** Whether targets that are instances, and not asked for, stay as they are. */
  readonly keepsNodes?: boolean;
  /** Most targets that it may have, those with weight 0 too; absent: not known. */
  readonly maxTargets?: number;
};

/**
 * A target that is asked for. Weight 0: it stays if it is registered, and is not registered again. `asIs`: nothing of
 * it changes, and it is not registered.
 */
export type DesiredTarget = {
  readonly ip: string;
  readonly port: number;
  readonly instanceId?: string;
  readonly weight: number | 'asIs';
};
