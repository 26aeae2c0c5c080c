import type { ConfigError } from '../../runtime/decode.ts';
import type { SeenNec } from '../demand/publication.ts';
import type { Supply } from '../journal/supply.ts';

/** What a source of supply tells. After `invalid` the last good supply stays in force. */
export type SupplyEvent =
  | {
      readonly kind: 'supply';
      readonly supply: Supply;
      /** The object that it was read from, where the agent has its say in it too. */
      readonly seen?: SeenNec;
    }
  | { readonly kind: 'invalid'; readonly error: ConfigError };

/** Where supply comes from: a file on this node, or the cluster. */
export type SupplySource = {
  /** The last good supply; undefined before the first. */
  latest(): Supply | undefined;
  /** What is wrong with the newest input; undefined when it is the one in force. */
  problem(): ConfigError | undefined;
  /** Calls `listener` with what is known now, then on each change. Returns the way to stop. */
  subscribe(listener: (event: SupplyEvent) => void): () => void;
  close(): void;
};
