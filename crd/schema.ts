/** A rule in CEL that the API server checks on each write (Kubernetes 1.25 and newer; older versions ignore it). */
export type CelRule = { readonly rule: string; readonly message: string };

/** The part of a structural OpenAPI v3 schema that the resources use; keys as in `apiextensions.k8s.io/v1`. */
export type OpenApiSchema = {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  readonly description?: string;
  readonly format?: 'ipv4' | 'ipv6' | 'cidr' | 'date-time' | 'int64';
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly enum?: readonly string[];
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly items?: OpenApiSchema;
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
  readonly additionalProperties?: OpenApiSchema;
  readonly required?: readonly string[];
  readonly anyOf?: readonly OpenApiSchema[];
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-validations'?: readonly CelRule[];
};
