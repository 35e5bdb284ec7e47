-- 500 films with some actors each, always the same.
CREATE TABLE films (id int PRIMARY KEY, title text NOT NULL, year int NOT NULL);
CREATE TABLE actors (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE roles (
    film_id int NOT NULL REFERENCES films, actor_id int NOT NULL REFERENCES actors,
    PRIMARY KEY (film_id, actor_id)
);
CREATE INDEX ON roles (actor_id);
INSERT INTO films SELECT n, 'Film ' || n, 1900 + n % 120 FROM generate_series(1, 500) n;
INSERT INTO actors SELECT n, 'Actor ' || n FROM generate_series(1, 200) n;
INSERT INTO roles SELECT f, 1 + (f * 7 + a * 13) % 200 FROM generate_series(1, 500) f, generate_series(1, 5) a;
ANALYZE;
