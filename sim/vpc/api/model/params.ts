import { ApiError } from './api-error.ts';

/** Codes that differ from one product to the next. */
export type ParamCodes = { readonly tooLong: string; readonly tooMany: string; readonly twice: string };

/** Codes of the VPC service. */
const VPC_CODES: ParamCodes = {
  tooLong: 'InvalidParameterValue.TooLong',
  tooMany: 'InvalidParameterValue.LimitExceeded',
  twice: 'InvalidParameterValue.DuplicatePara',
};

/** The parameters of one request, or of an object in it, read with the API's own complaints. A null is no value. */
export class Params {
  readonly raw: Readonly<Record<string, unknown>>;
  /** Where the object is in the request: `Targets.0.`; '' for the request itself. */
  readonly #at: string;
  readonly #codes: ParamCodes;

  /** @throws ApiError MissingParameter, UnknownParameter */
  constructor(
    raw: Readonly<Record<string, unknown>>,
    required: readonly string[],
    optional: readonly string[],
    codes = VPC_CODES,
    at = '',
  ) {
    this.raw = raw;
    this.#at = at;
    this.#codes = codes;
    for (const name of required) {
      if (!this.has(name)) throw new ApiError('MissingParameter', `The parameter ${at}${name} is missing.`);
    }
    for (const name of Object.keys(raw)) {
      if (!required.includes(name) && !optional.includes(name)) {
        throw new ApiError('UnknownParameter', `The parameter ${at}${name} is not recognized.`);
      }
    }
  }

  has(name: string): boolean {
    return (this.raw[name] ?? undefined) !== undefined;
  }

  /** True or false; undefined when absent. */
  flag(name: string): boolean | undefined {
    const value = this.raw[name] ?? undefined;
    if (value !== undefined && typeof value !== 'boolean') throw this.#invalidType(name, 'a boolean');
    return value;
  }

  /** One of these texts; `fallback` when absent. */
  choice<T extends string>(name: string, choices: readonly T[], fallback: T): T {
    const text = this.has(name) ? this.text(name) : fallback;
    const chosen = choices.find((choice) => choice === text);
    if (chosen !== undefined) return chosen;
    throw new ApiError(
      'InvalidParameterValue',
      `${this.#at}${name} must be one of ${choices.join(', ')}, not ${text}.`,
    );
  }

  /** Whole numbers, at most `most` of them; [] when absent. */
  integers(name: string, most: number, min: number, max: number): readonly number[] {
    const value = this.raw[name] ?? [];
    if (!Array.isArray(value)) throw this.#invalidType(name, 'a list');
    if (value.length > most) throw this.#tooMany(name, most);
    return value.map((item: unknown) => this.#checkInteger(name, item, min, max));
  }

  /** An object with parameters of its own; undefined when absent. */
  part(name: string, required: readonly string[], optional: readonly string[]): Params | undefined {
    const value = this.raw[name] ?? undefined;
    if (value === undefined) return undefined;
    if (!isObject(value)) throw this.#invalidType(name, 'an object');
    return new Params(value, required, optional, this.#codes, `${this.#at}${name}.`);
  }

  /** A list of objects with parameters of their own, at most `most` of them; [] when absent. */
  parts(name: string, most: number, required: readonly string[], optional: readonly string[]): readonly Params[] {
    const objects = this.objects(name);
    if (objects.length > most) throw this.#tooMany(name, most);
    return objects.map(
      (object, index) => new Params(object, required, optional, this.#codes, `${this.#at}${name}.${index}.`),
    );
  }

  /** A text of at most `most` characters; '' when absent. */
  text(name: string, most = 1_000): string {
    const value = this.raw[name] ?? '';
    if (typeof value !== 'string') throw this.#invalidType(name, 'a string');
    if (value.length > most) throw new ApiError(this.#codes.tooLong, `${this.#at}${name} exceeds ${most} characters.`);
    return value;
  }

  /** A whole number; `fallback` when absent. */
  integer(name: string, fallback: number, min: number, max: number): number {
    return this.#checkInteger(name, this.raw[name] ?? fallback, min, max);
  }

  /** A list of texts that may be the same; [] when absent. */
  labels(name: string, most: number): readonly string[] {
    const value = this.raw[name] ?? [];
    if (!Array.isArray(value) || value.some((item) => typeof item !== 'string'))
      throw this.#invalidType(name, 'a list');
    if (value.length > most) throw this.#tooMany(name, most);
    return value.map(String);
  }

  /** A list of texts, none twice; [] when absent. */
  texts(name: string, most: number): readonly string[] {
    const texts = this.labels(name, most);
    if (new Set(texts).size < texts.length) {
      throw new ApiError(this.#codes.twice, `${name} holds a value twice.`);
    }
    return texts;
  }

  /** The field `key` of a list of objects; [] when absent. */
  textsOf(name: string, key: string, most: number): readonly string[] {
    const objects = this.objects(name);
    if (objects.length > most) throw this.#tooMany(name, most);
    const texts = objects.map((object) => object[key]);
    if (texts.some((text) => typeof text !== 'string')) throw this.#invalidType(`${name}.${key}`, 'a string');
    if (new Set(texts).size < texts.length) {
      throw new ApiError(this.#codes.twice, `${name} holds a value twice.`);
    }
    return texts.map(String);
  }

  /** A list of objects; [] when absent. */
  objects(name: string): readonly Readonly<Record<string, unknown>>[] {
    const value = this.raw[name] ?? [];
    if (!Array.isArray(value) || !value.every(isObject)) throw this.#invalidType(name, 'a list of objects');
    return value;
  }

  /** `Tags: [{Key, Value}]` by key. */
  tags(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.objects('Tags').map((tag) => [String(tag['Key']), String(tag['Value'] ?? '')]));
  }

  #checkInteger(name: string, value: unknown, min: number, max: number): number {
    if (typeof value !== 'number' || !Number.isInteger(value)) throw this.#invalidType(name, 'an integer');
    if (value >= min && value <= max) return value;
    throw new ApiError('InvalidParameterValue.Range', `${this.#at}${name} must be from ${min} to ${max}.`);
  }

  #invalidType(name: string, expected: string): ApiError {
    return new ApiError('InvalidParameter', `The parameter ${this.#at}${name} must be ${expected}.`);
  }

  #tooMany(name: string, most: number): ApiError {
    return new ApiError(this.#codes.tooMany, `${this.#at}${name} holds more than ${most} values.`);
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
