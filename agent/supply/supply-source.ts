import type { ConfigError } from '../../runtime/decode.ts';
import type { Supply } from '../journal/supply.ts';
import type { ObservedNec } from './publication.ts';

/** A change that a source of supply reports. After `invalid` the last good supply stays in force. */
export type SupplyEvent =
  | {
      readonly kind: 'supply';
      readonly supply: Supply;
      /** The object that it was read from; present where the agent publishes in the same object. */
      readonly observed?: ObservedNec;
    }
  | { readonly kind: 'invalid'; readonly error: ConfigError };

/** What a source of supply reads of the agent's state. */
export type InForce = {
  /** Returns the supply in force, which the journal may have kept; undefined before the first. */
  readonly inForce: () => Supply | undefined;
};

/** Says what becomes of a node whose newest supply cannot be read, or is gone. */
export function afterInvalid({ inForce }: InForce): string {
  const isFirst = inForce() === undefined;
  return isFirst ? 'there was none before it: this node is not changed yet' : 'the last good one stays in force';
}

/** Where supply comes from: a file on this node, or the cluster. */
export type SupplySource = {
  /** The last good supply; undefined before the first. */
  latest(): Supply | undefined;
  /** The fault of the newest input; undefined when that input is in force. */
  problem(): ConfigError | undefined;
  /** Calls `listener` with what is known now, then on each change. Returns the function that unsubscribes. */
  subscribe(listener: (event: SupplyEvent) => void): () => void;
  close(): void;
};
