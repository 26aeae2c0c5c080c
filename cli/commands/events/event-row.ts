/** Something that happened, as the agent or Kubernetes reports it. */
export type EventRow = {
  /** Wall clock, milliseconds since 1970. */
  readonly atMs: number;
  /** Reporter: 'agent' for its flight recorder, else the component. */
  readonly source: string;
  /** ADD, DEL, …, or the reason of a Kubernetes event. */
  readonly kind: string;
  /** 'namespace/name' of a Pod, 'node/NAME'. */
  readonly subject: string;
  readonly isFailure: boolean;
  readonly text: string;
  readonly durationUs?: number;
  /** How often it happened. */
  readonly count?: number;
  readonly steps?: readonly { readonly name: string; readonly durationUs: number }[];
  /** Changes of the kernel's state. */
  readonly operations?: readonly string[];
};
