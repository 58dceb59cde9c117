//! Names of real servers, and servers that put on their names (S24).

use narthex_definitions::{Names, Resemblance};

use crate::{definition, ordinary::listed};

#[test]
fn s24_names_of_real_servers_do_not_resemble_each_other() {
    let all = listed().iter().map(definition).collect::<Vec<_>>();
    let named = |server, from: usize, to: usize| {
        all[from..to].iter().map(move |one| (server, one.key())).collect::<Vec<_>>()
    };
    let both = [named("everything", 0, 26), named("filesystem", 26, all.len())].concat();
    let names = Names::new(both.iter().copied());
    for (server, name) in both {
        assert_eq!(names.look_alike(server, name), None, "{server} {name}");
    }
}

/// Each name in disguise is found, whichever letter it has from another alphabet.
#[test]
fn s24_each_name_in_disguise_is_found() {
    let letters =
        [('a', 'а'), ('c', 'с'), ('e', 'е'), ('i', 'і'), ('o', 'о'), ('p', 'р'), ('l', '1')];
    let all = listed().iter().map(definition).collect::<Vec<_>>();
    let tools = all.iter().map(|one| one.key()).filter(|key| !key.contains(':'));
    let names = Names::new(tools.clone().map(|name| ("good", name)));
    let mut tried = 0;
    for name in tools {
        for (plain, other) in letters.iter().filter(|(plain, _)| name.contains(*plain)) {
            let disguised = name.replacen(*plain, &other.to_string(), 1);
            let found = names.look_alike("evil", &disguised).expect("it is like one");
            assert_eq!(found.name, name);
            assert_eq!(found.resemblance, Resemblance::Confusable, "{disguised}");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

/// Many names that look alike cost no more than a few, and do not hide those of others.
#[test]
fn s24_a_flood_of_similar_names_hides_no_resemblance() {
    let flood = (0..2000).map(|at| {
        let cases = (0..11).map(|bit| if at >> bit & 1 == 1 { 'A' } else { 'a' });
        cases.collect::<String>()
    });
    let flood = flood.collect::<Vec<_>>();
    let all = flood.iter().map(|name| ("evil", name.as_str())).chain([("good", "aaaaaaaaaaa")]);
    let names = Names::new(all);
    for name in &flood {
        assert_eq!(names.look_alike("evil", name).unwrap().server, "good");
    }
}
