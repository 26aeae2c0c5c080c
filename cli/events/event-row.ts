/** Something that happened, as the agent or Kubernetes tells it. */
export type EventRow = {
  /** Wall clock, milliseconds since 1970. */
  readonly atMs: number;
  /** Who tells it: 'agent' for its recorder, else the component. */
  readonly source: string;
  /** ADD, DEL, …, or the reason of a Kubernetes event. */
  readonly kind: string;
  /** 'namespace/name' of a Pod, 'node/NAME'. */
  readonly subject: string;
  readonly isFailure: boolean;
  readonly text: string;
  readonly durationUs?: number;
  /** Times that it happened. */
  readonly count?: number;
  readonly steps?: readonly { readonly name: string; readonly durationUs: number }[];
  /** What was done to the kernel. */
  readonly operations?: readonly string[];
};
