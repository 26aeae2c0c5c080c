import type { Parser } from './annotation-values.ts';

/** The object that a row is about. */
type RowPlace = 'Service' | 'Node' | 'Pod' | 'ConfigMap tke-service-controller-config' | 'TkeServiceConfig';

/** What the documents say of a name. */
type RowText = {
  readonly name: string;
  readonly means: string;
  /** What may be written. */
  readonly form: string;
};

/** An annotation of a Service that has an effect. */
export type ServedRow<T> = RowText & {
  readonly outcome: 'served';
  readonly parse: Parser<T>;
  /** What an error adds after what was expected. */
  readonly cure: string;
  /** Older names of the same annotation. */
  readonly olderNames?: readonly string[];
  /** Whether it may be a label of the Service, too. */
  readonly isLabelToo?: true;
};

/** A name that is not obeyed. One of a Service is reported; what stands elsewhere is not read at all. */
export type RefusedRow = RowText & {
  readonly outcome: 'refused';
  readonly place: RowPlace;
  readonly why: string;
  /** What to do instead. */
  readonly instead: string;
  /** Whether a load balancer made without it would be another one than the one that is meant. */
  readonly blocks: boolean;
  /** Values that ask for nothing: they are not reported. */
  readonly neutral: readonly string[];
};

/** An annotation that the service controller writes; what a person writes into it is replaced. */
export type WrittenRow = RowText & { readonly outcome: 'written' };
